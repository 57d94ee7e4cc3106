import type { RecordRules } from '../../domain/history/record-rules.ts'
import { pollValue } from '../../domain/polling/cadence.ts'
import { cadenceFactsOf } from '../../domain/polling/next-poll.ts'
import type { DueCursor } from '../../domain/polling/poll.ts'
import type { WriteTx } from '../../store/write-store.ts'
import type { SchedulePorts } from './schedule-poll.tx.ts'

export type RankTx = Pick<WriteTx, 'duePolls' | 'findParcels'>

export interface PollPriority {
  /** Returns the ids of the most valuable due parcels, the best first. Each call returns other parcels. Empty: nothing is due. */
  best(tx: RankTx, nowMs: number, limit: number): Promise<readonly number[]>
  /** Drops the ranking. Call it when calls are not scarce. */
  forget(): void
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
export function createPollPriority(ports: Pick<SchedulePorts, 'model'>, options: Pick<RecordRules, 'cadence'>): PollPriority {
  let ranked: readonly Ranked[] = []
  let cursor: DueCursor | null = null
  let lookedAtMs = Number.NEGATIVE_INFINITY

  async function look(tx: RankTx, nowMs: number): Promise<void> {
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
    async best(tx, nowMs, limit) {
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
    forget() {
      ranked = []
      cursor = null
      lookedAtMs = Number.NEGATIVE_INFINITY
    },
  }
}
