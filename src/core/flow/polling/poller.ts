import type { DuePoll, MissedPush } from '../../domain/polling/poll.ts'
import type { PushHealth } from '../../domain/polling/push-health.ts'
import { createFailureLog } from '../log-digest.ts'
import type { Part, Reads, Relay, Writes } from '../relay-part.ts'
import type { Refresh } from './refresh.ts'
import type { SharedModel } from './shared-model.ts'

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
export type PollsUnderWay = ReturnType<typeof createPollsUnderWay>

/** Create it only once, because scheduled polls and operators' orders share it. */
export function createPollsUnderWay() {
  const underWay = new Map<number, number>()
  return {
    /** Lists the parcel as being polled until `work` has ended. */
    async during<Value>(parcelId: number, work: () => Promise<Value>): Promise<Value> {
      underWay.set(parcelId, (underWay.get(parcelId) ?? 0) + 1)
      try {
        return await work()
      } finally {
        const others = (underWay.get(parcelId) ?? 1) - 1
        if (others > 0) underWay.set(parcelId, others)
        else underWay.delete(parcelId)
      }
    },
    list: (): readonly number[] => [...underWay.keys()],
  }
}

interface PollerPassPorts extends Pick<ClockRollbackPorts, 'write' | 'clock'>, Pick<Relay, 'log'> {
  readonly poll: () => Promise<'busy' | 'idle'>
  readonly isPoller: () => boolean
  /** Returns null if there is no trouble. `lost`: the store does not work. Any other text: nothing may be recorded. */
  readonly storeTrouble: () => string | null
  /** What the replicas have learnt about the carrier, together; null: no other replica shares the store. */
  readonly model: Pick<SharedModel, 'load' | 'fold'> | null
  /** Saves what was learnt about pushes, and logs when their health changes. */
  readonly lookAtPushes: () => Promise<void>
  /** Called when the schedule was moved to earlier times, because the clock was put back. */
  readonly onShifted: () => void
}

/** @param lastSeenMs the last wall-clock time that the relay saw before it was restarted, epoch milliseconds; null: it never ran before. */
export function createPollerPass(ports: PollerPassPorts, lastSeenMs: number | null) {
  const { poll, model } = ports
  let adjustToClock = createClockRollback(ports, lastSeenMs)
  let isTakeoverDue = false

  /** After a failure, the next pass tries again. */
  async function takeOver(): Promise<void> {
    if (!isTakeoverDue) return
    // Start with the present clock, because the previous poller has handled all changes of the clock until now.
    adjustToClock = createClockRollback(ports, null)
    await model?.load({ resume: true })
    isTakeoverDue = false
  }

  return {
    /** Moves the schedule if the clock was put back. */
    adjustToClock: () => adjustToClock(),
    /** Call it when this replica becomes the poller. Its next pass first takes over from the previous poller. */
    begin() {
      isTakeoverDue = true
    },
    /** Makes one pass if this replica is the poller and the store works. */
    async pass(): Promise<'busy' | 'idle'> {
      // If the store does not work, polls would only waste the carrier's budget.
      if (ports.storeTrouble() === 'lost' || !ports.isPoller()) return 'idle'
      await takeOver()
      await adjustToClock()
      await model?.fold()
      const result = ports.storeTrouble() === null ? await poll() : 'idle'
      await ports.lookAtPushes()
      return result
    },
  }
}

interface ClockRollbackPorts extends Pick<Relay, 'clock' | 'log'>, Writes<'shiftSchedule'> {
  /** Called when the schedule was moved to earlier times, so that timers can be set again. */
  readonly onShifted: () => void
}

/** Smaller corrections of a clock are normal and are ignored. */
const JUMP_MIN_MS = 30_000
/** One transaction moves this many parcels. */
const BATCH = 500

/**
 * Moves the schedule back when the wall clock is put back, because polls and deliveries are planned in wall time and would come too late. The
 * schedule stays if the clock is put forward. Many polls then become due at once, but the carrier's budget limits them.
 *
 * Call it before each pass of the poller, and also regularly, because deliveries depend on the clock, too. Calls at the same time share one
 * check.
 *
 * @param lastSeenMs the last wall-clock time that the relay saw before it was restarted, epoch milliseconds; null: it never ran before.
 */
export function createClockRollback({ write, clock, log, onShifted }: ClockRollbackPorts, lastSeenMs: number | null): () => Promise<void> {
  let seen = { wallMs: Math.max(clock.now(), lastSeenMs ?? 0), monotonicMs: clock.monotonic() }
  /** The rest of a shift that a failure of the store interrupted. The next call continues it. Null: none. */
  let left: { readonly byMs: number; readonly sinceMs: number; readonly afterParcelId: number } | null = null

  let running: Promise<void> | null = null

  async function shift(): Promise<void> {
    const now = { wallMs: clock.now(), monotonicMs: clock.monotonic() }
    const backMs = Math.round(now.monotonicMs - seen.monotonicMs - (now.wallMs - seen.wallMs))
    if (backMs >= JUMP_MIN_MS && left === null) {
      log.warn({ backMs }, 'the clock was put back: all polls and deliveries are moved back with it')
      left = { byMs: backMs, sinceMs: Math.floor(now.wallMs - (now.monotonicMs - seen.monotonicMs)), afterParcelId: 0 }
      seen = now
    } else if (backMs < JUMP_MIN_MS) seen = now
    while (left !== null) {
      const { afterParcelId, ...jump }: { readonly byMs: number; readonly sinceMs: number; readonly afterParcelId: number } = left
      const last = await write.shiftSchedule({ ...jump, nowMs: clock.now(), afterParcelId, limit: BATCH })
      left = last === null ? null : { ...jump, afterParcelId: last }
      if (left === null) onShifted()
    }
  }

  return () => {
    running ??= shift().finally(() => {
      running = null
    })
    return running
  }
}

export type PushHealthMonitor = Awaited<ReturnType<typeof openPushHealthMonitor>>

/** Opens the monitor, which starts with the health that was saved last. */
export async function openPushHealthMonitor(
  ports: Pick<Relay, 'log'> & Writes<'pushChannel' | 'checkpointModel'> & { readonly wake: () => void },
) {
  let { health } = await ports.write.pushChannel()
  return {
    health: (): PushHealth => health,
    /** Reads the health that another replica has saved. */
    async look() {
      health = (await ports.write.pushChannel()).health
    },
    /** Saves what was learnt, and logs when the health changes. Call it after each pass of the poller. */
    async update() {
      const before = health
      const news = await ports.write.checkpointModel()
      health = news.health
      if (news.eventQueued) ports.wake()
      if (health === before) return
      if (health === 'silent')
        ports.log.warn(
          { before },
          'no pushes with news arrive although the carrier scans (none come, or none are understood): polls fall back to their full intervals',
        )
      else ports.log.info({ before, pushHealth: health }, 'the health of the carrier’s pushes has changed')
    },
  }
}
