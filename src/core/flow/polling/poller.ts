import type { DuePoll, MissedPush } from '../../domain/polling/poll.ts'
import { createFailureLog } from '../log-digest.ts'
import type { Part, Reads, Relay, Writes } from '../relay.ts'
import type { Refresh } from './refresh.ts'

export interface PollerPorts
  extends Pick<Relay, 'clock' | 'log'>,
    Part<'meter', 'missedPush'>,
    Writes<'claimDuePolls' | 'settleMissedPushes'> {
  readonly refresh: Pick<Refresh, 'poll'>
  readonly underWay: PollsUnderWay
  /** Whether scheduled polls are suspended at this time (`poll.quietHours`). */
  readonly isQuiet: (nowMs: number) => boolean
  /** A second limit on the number of polls at once. While the carrier fails, it is 0, or 1 when a poll may probe the carrier. */
  readonly callsAllowed?: () => number
  /** Since when the carrier fails, epoch milliseconds. The next poll is then a probe. Undefined: it does not fail. */
  readonly failsSinceMs?: () => number | undefined
  /** See `claim-answered`. Absent: probes ask about due parcels only. */
  readonly claimAnswered?: ClaimAnswered
}

/** If the result of a poll gets lost, the parcel can be polled again after this time. A poll that still runs prevents this (`polls-under-way`). */
const LEASE_MS = 5 * 60_000

/** Polls are claimed only when this share of the limit is free, because a claim after each poll would query the store too often. */
const FREE_PART = 1 / 4

/**
 * Creates the poller. One pass settles missed pushes, waits until there is room for more polls, and claims and starts as many as there is
 * room for. A poll that hangs takes up room but does not stop other polls.
 *
 * `busy`: more polls may be due, and polls may still run. `idle`: all polls have ended. Either nothing more is due, or the carrier cannot be asked
 * until the poller is woken.
 */
export function createPoller(ports: PollerPorts, { concurrency }: { readonly concurrency: number }): () => Promise<'busy' | 'idle'> {
  const { write, refresh, underWay, clock } = ports
  const failures = createFailureLog(ports)
  const inFlight = new Set<Promise<void>>()
  /** The parcels whose polls gave no result because this replica's own lease had lapsed. The next claim ends the leases of these polls. */
  const lapsed = new Set<number>()
  const logMissed = createMissedPushLog(ports)
  let isRefused = false

  function start(due: DuePoll): void {
    const poll: Promise<void> = underWay
      .during(due.parcelId, () => refresh.poll(due))
      .then(
        (refreshed) => {
          if (refreshed === 'lapsed') lapsed.add(due.parcelId)
          if (refreshed === 'unavailable' || refreshed === 'lapsed') isRefused = true
        },
        (err: unknown) => {
          isRefused = true
          failures.add('error', { err, parcelId: due.parcelId }, 'a poll failed; no more are made until the next wake')
        },
      )
      .finally(() => inFlight.delete(poll))
    inFlight.add(poll)
  }

  /** Returns how many polls may run now. Call it again after each wait, because quiet hours may have begun, or the carrier may have failed. */
  function limit(): number {
    return ports.isQuiet(clock.now()) ? 0 : Math.min(concurrency, ports.callsAllowed?.() ?? concurrency)
  }

  async function claim(limit: number): Promise<readonly DuePoll[]> {
    const probeSinceMs = ports.failsSinceMs?.()
    const answered = probeSinceMs === undefined ? undefined : await ports.claimAnswered?.(LEASE_MS)
    if (answered !== undefined && answered !== null) return [answered]
    const request = { nowMs: clock.now(), limit, leaseMs: LEASE_MS, underWay: [...underWay.list(), ...lapsed], probeSinceMs }
    lapsed.clear()
    return await write.claimDuePolls(request)
  }

  async function rest(): Promise<'idle'> {
    await Promise.all(inFlight)
    isRefused = false
    return 'idle'
  }

  return async () => {
    const nowMs = clock.now()
    const missed = await write.settleMissedPushes(nowMs)
    for (const { eventAtMs, foundAtMs } of missed) ports.meter.missedPush(Math.max(0, foundAtMs - eventAtMs))
    logMissed(missed)
    while (!isRefused && inFlight.size > 0 && limit() - inFlight.size < limit() * FREE_PART) await Promise.race(inFlight)
    const room = limit() - inFlight.size
    if (isRefused || room <= 0) return await rest()
    const due = await claim(room)
    due.forEach(start)
    return due.length === room ? 'busy' : await rest()
  }
}

const EVERY_MS = 60_000
/** A line names this many parcels, enough to investigate. `relay_missed_pushes_total` counts all missed pushes. */
const IDENTIFIERS_MAX = 5

/**
 * Logs missed pushes, at most one line per minute: their number, the longest time from an event to the poll that found it, and some of the
 * parcels. Call it at every pass, even without missed pushes.
 */
export function createMissedPushLog({
  log,
  clock,
}: Part<'clock', 'monotonic'> & Part<'log', 'info'>): (missed: readonly MissedPush[]) => void {
  let waiting: readonly MissedPush[] = []
  let count = 0
  let loggedAtMs = Number.NEGATIVE_INFINITY

  return (missed) => {
    count += missed.length
    waiting = [...waiting, ...missed].sort((a, b) => latenessOf(b) - latenessOf(a)).slice(0, IDENTIFIERS_MAX)
    if (count === 0 || clock.monotonic() - loggedAtMs < EVERY_MS) return
    loggedAtMs = clock.monotonic()
    const identifiers = [...new Set(waiting.map(({ identifier }) => identifier))].filter((one) => one !== null)
    const latestMs = Math.max(...waiting.map(latenessOf))
    log.info({ count, identifiers, latestMs }, 'pushes were missed: polls found their entries')
    count = 0
    waiting = []
  }
}

function latenessOf({ eventAtMs, foundAtMs }: MissedPush): number {
  return foundAtMs - eventAtMs
}

/**
 * Claims a parcel that the carrier has answered before, due or not; null: there is none. If a failing carrier works again, it most likely answers
 * about such a parcel.
 */
type ClaimAnswered = (leaseMs: number) => Promise<DuePoll | null>

/** @param random returns a number from 0 (inclusive) to 1 (exclusive). */
export function createClaimAnswered(
  { reads, write, clock }: Part<'clock', 'now'> & Reads<'answeredParcels'> & Writes<'claimPoll'>,
  random: () => number,
): ClaimAnswered {
  return async (leaseMs) => {
    const known = await reads.answeredParcels()
    const identifier = known[Math.floor(random() * known.length)]
    return identifier === undefined ? null : await write.claimPoll({ identifier, nowMs: clock.now(), leaseMs })
  }
}

/*
 * The schedule must not make two polls of a parcel at once. So a claim of a poll leases the parcel. Until the lease ends, only an operator's
 * order may poll the parcel again. The lease ends when the result of the poll, or its failure, is recorded. If the result is lost, the lease
 * expires.
 *
 * A poll waits for the carrier's budget, so it may take longer than its lease. So the poller names, with each claim, the parcels that it is
 * still polling. The writer leases them again for 1 ms, which keeps them out of that claim only. The result of such a poll may have been saved
 * just before the claim. Nothing would then end a longer lease.
 *
 * A replica that loses its role as poller aborts its scheduled polls and does not save their results. If it becomes the poller again, its
 * first claim also names the parcels of the aborted polls, so that their old leases end with that claim.
 */

/** The parcels that are being polled, on schedule or by order. */
export interface PollsUnderWay {
  /** Lists the parcel as being polled until `work` has ended. */
  during<Value>(parcelId: number, work: () => Promise<Value>): Promise<Value>
  list(): readonly number[]
}

/** Create it only once, because scheduled polls and operators' orders share it. */
export function createPollsUnderWay(): PollsUnderWay {
  const underWay = new Map<number, number>()
  return {
    async during(parcelId, work) {
      underWay.set(parcelId, (underWay.get(parcelId) ?? 0) + 1)
      try {
        return await work()
      } finally {
        const others = (underWay.get(parcelId) ?? 1) - 1
        if (others > 0) underWay.set(parcelId, others)
        else underWay.delete(parcelId)
      }
    },
    list: () => [...underWay.keys()],
  }
}
