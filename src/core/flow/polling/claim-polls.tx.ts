import { countsFromMs, type ParcelState } from '../../domain/history/parcel-state.ts'
import type { RecordRules } from '../../domain/history/recording.ts'
import { pollValue } from '../../domain/polling/cadence.ts'
import { cadenceFactsOf, type DueCursor, type DuePoll, type PollCandidate } from '../../domain/polling/poll.ts'
import { pollableIdentifiers } from '../../store/history/parcels.ts'
import type { Transactions, WriteTx } from '../../store/write-store.ts'
import { type SchedulePorts, schedulePolls } from './schedule-poll.tx.ts'

/** Calls are scarce if the most overdue poll is this late. Then the most valuable polls are made first, instead of the most overdue. */
const SCARCE_AFTER_MS = 10 * 60_000
/** One transaction looks at this many parcels, so that pushes wait for a few milliseconds at most. */
const LOOKED_AT_ONCE = 256
/** A time so late that the carrier may be asked about every identifier. */
const EVER_MS = Number.MAX_SAFE_INTEGER

interface ClaimRequest {
  readonly nowMs: number
  readonly limit: number
  readonly leaseMs: number
  readonly underWay?: readonly number[]
  readonly probeSinceMs?: number | undefined
}

interface Turn {
  readonly polls: readonly DuePoll[]
  readonly ended: boolean
}

/**
 * Claims due polls: the most overdue first if there are enough calls, otherwise the most valuable first. The stored time of a poll is the
 * earliest possible one. Pushes may have postponed the poll. Its later time is computed here, and not at every push.
 *
 * @param random returns a number from 0 (inclusive) to 1 (exclusive).
 */
export function createClaimDuePolls(ports: SchedulePorts & { readonly store: Transactions }, options: RecordRules, random: () => number) {
  const ranking = createPollPriority(ports, options)

  async function pick(tx: WriteTx, nowMs: number, limit: number): Promise<readonly number[]> {
    const [longest] = await tx.duePolls({ nowMs, limit: 1, after: null })
    const isScarce = longest !== undefined && nowMs - longest.dueAtMs > SCARCE_AFTER_MS
    if (isScarce) return await ranking.best(tx, nowMs, limit)
    ranking.forget()
    return (await tx.duePolls({ nowMs, limit, after: null })).map(({ parcelId }) => parcelId)
  }

  /**
   * Picks a due poll at random, because the most overdue parcels may be the ones whose polls always fail. Leaves out polls that have failed since
   * `sinceMs`, unless all have.
   */
  async function pickProbe(tx: WriteTx, nowMs: number, sinceMs: number): Promise<readonly number[]> {
    const [longest] = await tx.duePolls({ nowMs, limit: 1, after: null })
    if (longest === undefined) return []
    const fromMs = longest.dueAtMs + random() * (nowMs - longest.dueAtMs)
    const later = await tx.duePolls({ nowMs, limit: LOOKED_AT_ONCE, after: { dueAtMs: Math.floor(fromMs), parcelId: 0 } })
    const first = later.length < LOOKED_AT_ONCE ? await tx.duePolls({ nowMs, limit: LOOKED_AT_ONCE, after: null }) : []
    const parcelIds = [...new Set([...later, ...first].map(({ parcelId }) => parcelId))]
    const due = await tx.pollCandidates({ parcelIds, nowMs })
    const untried = due.filter(({ failedAtMs }) => failedAtMs === null || failedAtMs < sinceMs)
    const among = untried.length > 0 ? untried : due
    const picked = among[Math.floor(random() * among.length)]
    return picked === undefined ? [] : [picked.parcelId]
  }

  async function takeTurn(tx: WriteTx, { nowMs, probeSinceMs }: ClaimRequest, limit: number, leaseUntilMs: number): Promise<Turn> {
    const parcelIds = await (probeSinceMs !== undefined
      ? pickProbe(tx, nowMs, probeSinceMs)
      : pick(tx, nowMs, Math.min(limit, LOOKED_AT_ONCE)))
    const candidates = await tx.pollCandidates({ parcelIds, nowMs })
    // If the clock was put back, a poll may be due before the carrier may be asked about any of its identifiers. Then `identifiers` is empty.
    const isDoubtful = ({ pushedSince, identifiers }: PollCandidate) => pushedSince || identifiers.length === 0
    const doubtful = candidates.filter(isDoubtful).map(({ parcelId }) => parcelId)
    const stillDue = await dueIfPlannedNow(tx, doubtful, nowMs)
    const polls = candidates
      .filter((candidate) => !isDoubtful(candidate) || stillDue.has(candidate.parcelId))
      .map(({ parcelId, identifiers }) => ({ parcelId, identifiers }))
    const claimed = polls.map(({ parcelId }) => parcelId)
    tx.leasePolls(claimed, leaseUntilMs)
    return { polls, ended: parcelIds.length === 0 }
  }

  /**
   * Returns the parcels that are still due. For the others, saves the later time of their polls, or that they are no longer polled. A parcel
   * that was joined to another or deleted meanwhile is not due.
   */
  async function dueIfPlannedNow(tx: WriteTx, parcelIds: readonly number[], nowMs: number): Promise<ReadonlySet<number>> {
    if (parcelIds.length === 0) return new Set()
    const parcels = await tx.findParcels(parcelIds)
    // If the newest entry lies in the future, the clock was put back, and a poll that is planned from that entry would be too late.
    const isAhead = ({ latest }: ParcelState) => latest !== null && countsFromMs(latest) > nowMs
    const isDueAnyway = (parcel: ParcelState) => isAhead(parcel) || isUnaskedSinceRestore(parcel)
    const next = await schedulePolls(
      tx,
      parcels.filter((parcel) => !isDueAnyway(parcel)),
      ports,
      options,
    )
    const isDue = ({ nextPollAtMs }: ParcelState) => nextPollAtMs !== null && nextPollAtMs <= nowMs
    tx.saveParcels(next.filter((parcel) => !isDue(parcel)))
    return new Set([...parcels.filter(isDueAnyway), ...next.filter(isDue)].map(({ parcelId }) => parcelId))
  }

  /** Whether a parcel was not polled since a restore. The restore may have lost pushes, so the poll must not be postponed (DOMAIN 6.1). */
  function isUnaskedSinceRestore({ checkedAtMs, watchedAtMs }: ParcelState): boolean {
    const { restoredAtMs = null } = options
    const lastMs = checkedAtMs ?? watchedAtMs
    return restoredAtMs !== null && lastMs !== null && lastMs < restoredAtMs
  }

  return {
    /**
     * Leases due parcels: the most overdue, or if calls are scarce, the most valuable. Leaves out those in `underWay`, which are still being
     * polled. `probeSinceMs`: leases one due parcel at random, if possible one whose poll has not failed since this time.
     */
    async claimDuePolls(request: ClaimRequest): Promise<readonly DuePoll[]> {
      const { nowMs, limit, leaseMs, underWay = [] } = request
      const claimed: DuePoll[] = []
      const leaseUntilMs = nowMs + leaseMs
      for (;;) {
        const wanted = limit - claimed.length
        const { polls, ended } = await ports.store.transaction(
          (tx) => {
            // Keep polls that are under way out of this claim, but not out of later ones (see `polls-under-way`).
            tx.leasePolls(underWay, nowMs + 1)
            return takeTurn(tx, request, wanted, leaseUntilMs)
          },
          { ofRole: 'poller' },
        )
        claimed.push(...polls)
        if (ended || claimed.length >= limit) return claimed
      }
    },
  }
}

export function createClaimPoll(store: Transactions) {
  return {
    /** Leases the parcel of an identifier, whether or not its poll is due; null: there is no such parcel. */
    claimPoll: ({ identifier, nowMs, leaseMs }: { readonly identifier: string; readonly nowMs: number; readonly leaseMs: number }) =>
      store.transaction(async (tx): Promise<DuePoll | null> => {
        const [known] = await tx.findIdentifiers([identifier])
        if (known === undefined) return null
        const { parcelId } = known
        tx.leasePolls([parcelId], nowMs + leaseMs)
        const identifiers = await pollableIdentifiers(tx, parcelId, nowMs)
        // If the carrier did not know any of the identifiers lately, ask about all of them anyway, because an operator has ordered this poll.
        return { parcelId, identifiers: identifiers.length > 0 ? identifiers : await pollableIdentifiers(tx, parcelId, EVER_MS) }
      }),
  }
}

interface Ranked {
  readonly parcelId: number
  readonly worth: number
}

/** How many polls are ranked at a time. Each takes some ten microseconds, and nothing can be recorded meanwhile. */
const WEIGHED_AT_ONCE = 512
const LOOK_EVERY_MS = 15_000
const LOOKS_MAX = 4
/** At most this many ranked polls are kept. Less valuable polls are dropped, and ranked again when their turn comes. */
const RANKED_MAX = WEIGHED_AT_ONCE * LOOKS_MAX

/**
 * Ranks due polls by value, for times when there are too few calls. A million parcels may be due. So each look ranks some of them, keeps the
 * best, and continues where the last look stopped. After the last parcel, the next look begins again. Up to two thousand due polls are all
 * ranked every minute, which is enough because values change over hours.
 */
function createPollPriority(ports: Pick<SchedulePorts, 'model'>, options: Pick<RecordRules, 'cadence'>) {
  let ranked: readonly Ranked[] = []
  let cursor: DueCursor | null = null
  let lookedAtMs = Number.NEGATIVE_INFINITY

  async function look(tx: WriteTx, nowMs: number): Promise<void> {
    const due = await tx.duePolls({ nowMs, limit: WEIGHED_AT_ONCE, after: cursor })
    cursor = due.length < WEIGHED_AT_ONCE ? null : (due.at(-1) ?? null)
    const model = ports.model()
    const parcels = new Map((await tx.findParcels(due.map(({ parcelId }) => parcelId))).map((parcel) => [parcel.parcelId, parcel]))
    const weighed = due.flatMap(({ parcelId }): readonly Ranked[] => {
      const parcel = parcels.get(parcelId)
      // The parcel was joined to another one or deleted after it was found to be due.
      if (parcel === undefined) return []
      return [{ parcelId, worth: pollValue(cadenceFactsOf(parcel, false, nowMs), model, options.cadence, nowMs) }]
    })
    const reranked = new Set(due.map(({ parcelId }) => parcelId))
    // Test for equality first, because a worth may be minus infinity, and the difference of two infinite values is NaN.
    ranked = [...ranked.filter(({ parcelId }) => !reranked.has(parcelId)), ...weighed]
      .sort((a, b) => (a.worth === b.worth ? 0 : b.worth - a.worth))
      .slice(0, RANKED_MAX)
  }

  return {
    /** Returns the ids of the most valuable due parcels, the best first. Each call returns other parcels. Empty: nothing is due. */
    async best(tx: WriteTx, nowMs: number, limit: number): Promise<readonly number[]> {
      // Take the absolute value, so that polls are ranked even if the clock was put back.
      const looks = Math.min(LOOKS_MAX, Math.floor(Math.abs(nowMs - lookedAtMs) / LOOK_EVERY_MS))
      if (looks > 0) lookedAtMs = nowMs
      for (let made = 0; made < looks && (made === 0 || cursor !== null); made++) await look(tx, nowMs)
      if (ranked.length === 0) await look(tx, nowMs)
      // If an earlier look stopped exactly at the end, this look has found nothing. Then look again, from the start.
      if (ranked.length === 0) await look(tx, nowMs)
      const best = ranked.slice(0, limit)
      ranked = ranked.slice(limit)
      return best.map(({ parcelId }) => parcelId)
    },
    /** Drops the ranking. Call it when calls are not scarce. */
    forget() {
      ranked = []
      cursor = null
      lookedAtMs = Number.NEGATIVE_INFINITY
    },
  }
}
