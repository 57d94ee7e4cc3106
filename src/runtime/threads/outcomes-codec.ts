import type { RecordOutcome } from '../../domain/history/recording.ts'
import type { CommitReport } from '../commit-queue.ts'

/** The report of a commit as it crosses between threads: copying a message of many small objects takes longer than copying one buffer. */
export interface EncodedReport extends Omit<CommitReport, 'outcomes'> {
  /** The number of observations. */
  readonly count: number
  /** `NUMBERS_EACH` numbers for each observation; unused for those in `others`. */
  readonly numbers: Float64Array
  /** All but plain `recorded` outcomes, with their index in the batch. */
  readonly others: readonly (readonly [index: number, outcome: RecordOutcome])[]
}

const NUMBERS_EACH = 4

export function encodeReport({ outcomes, ...rest }: CommitReport): EncodedReport {
  const numbers = new Float64Array(outcomes.length * NUMBERS_EACH)
  const others: [number, RecordOutcome][] = []
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome.kind !== 'recorded' || outcome.anomalies !== undefined) {
      others.push([index, outcome])
      continue
    }
    const at = index * NUMBERS_EACH
    numbers[at] = outcome.parcelId
    numbers[at + 1] = outcome.changed ? 1 : 0
    numbers[at + 2] = outcome.newEntries
    numbers[at + 3] = outcome.queued
  }
  return { ...rest, count: outcomes.length, numbers, others }
}

export function decodeReport({ count, numbers, others, ...rest }: EncodedReport): CommitReport {
  const number = (at: number) => numbers[at] ?? 0
  const outcomes: RecordOutcome[] = []
  for (let at = 0; at < count * NUMBERS_EACH; at += NUMBERS_EACH) {
    const changed = number(at + 1) === 1
    outcomes.push({ kind: 'recorded', parcelId: number(at), changed, newEntries: number(at + 2), queued: number(at + 3) })
  }
  for (const [index, outcome] of others) outcomes[index] = outcome
  return { ...rest, outcomes }
}
