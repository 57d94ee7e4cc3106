import type { BatchReport, RecordOutcome } from '../flow/ports.ts'

/**
 * What became of a batch, as it travels back from the writer's thread: a message of many small objects costs more than recording did.
 */
export interface PackedOutcomes extends Omit<BatchReport, 'outcomes' | 'touchedParcels'> {
  /** `RECORDED_WIDTH` numbers an observation: of one that was plainly recorded all there is to say, of another nothing. */
  readonly recorded: ArrayBuffer
  /** The others, with their place in the batch. */
  readonly others: readonly (readonly [place: number, outcome: RecordOutcome])[]
  readonly touched: ArrayBuffer
}

const RECORDED_WIDTH = 4

export function packOutcomes({ outcomes, touchedParcels, ...rest }: BatchReport): PackedOutcomes {
  const recorded = new Float64Array(outcomes.length * RECORDED_WIDTH)
  const others: [number, RecordOutcome][] = []
  for (const [place, outcome] of outcomes.entries()) {
    if (outcome.kind !== 'recorded' || outcome.remark !== undefined) others.push([place, outcome])
    else recorded.set([outcome.parcelId, outcome.changed ? 1 : 0, outcome.newEntries, outcome.queued], place * RECORDED_WIDTH)
  }
  return { ...rest, recorded: recorded.buffer, others, touched: Float64Array.from(touchedParcels).buffer }
}

export function unpackOutcomes({ recorded, others, touched, ...rest }: PackedOutcomes): BatchReport {
  const numbers = new Float64Array(recorded)
  const said = new Map(others)
  const outcomes = Array.from({ length: numbers.length / RECORDED_WIDTH }, (_, place): RecordOutcome => {
    const at = place * RECORDED_WIDTH
    const number = (column: number) => numbers[at + column] ?? 0
    return said.get(place) ?? { kind: 'recorded', parcelId: number(0), changed: number(1) === 1, newEntries: number(2), queued: number(3) }
  })
  return { ...rest, outcomes, touchedParcels: [...new Float64Array(touched)] }
}
