import type { RecordOutcome } from '../../domain/history/recording.ts'
import type { CommitReport } from '../commit-queue.ts'

/**
 * What became of a batch, as it travels back from the writer's thread: a message of many small objects costs more than recording did.
 */
export interface EncodedOutcomes extends Omit<CommitReport, 'outcomes'> {
  /** How many observations there were. */
  readonly count: number
  /** `RECORDED_WIDTH` numbers an observation: of one that was plainly recorded all there is to say, of another nothing. */
  readonly numbers: ArrayBuffer
  /** The others, with their place in the batch. */
  readonly others: readonly (readonly [place: number, outcome: RecordOutcome])[]
}

const RECORDED_WIDTH = 4

export function encodeOutcomes({ outcomes, ...rest }: CommitReport): EncodedOutcomes {
  const count = outcomes.length
  const numbers = new Float64Array(count * RECORDED_WIDTH)
  const others: [number, RecordOutcome][] = []
  for (const [place, outcome] of outcomes.entries()) {
    if (outcome.kind !== 'recorded' || outcome.remark !== undefined) {
      others.push([place, outcome])
      continue
    }
    const at = place * RECORDED_WIDTH
    numbers[at] = outcome.parcelId
    numbers[at + 1] = outcome.changed ? 1 : 0
    numbers[at + 2] = outcome.newEntries
    numbers[at + 3] = outcome.queued
  }
  return { ...rest, count, numbers: numbers.buffer, others }
}

export function decodeOutcomes({ count, numbers: packed, others, ...rest }: EncodedOutcomes): CommitReport {
  const numbers = new Float64Array(packed)
  const number = (at: number) => numbers[at] ?? 0
  const outcomes: RecordOutcome[] = []
  for (let at = 0; at < count * RECORDED_WIDTH; at += RECORDED_WIDTH) {
    const changed = number(at + 1) === 1
    outcomes.push({ kind: 'recorded', parcelId: number(at), changed, newEntries: number(at + 2), queued: number(at + 3) })
  }
  for (const [place, outcome] of others) outcomes[place] = outcome
  return { ...rest, outcomes }
}
