import type { BatchReport, Incoming, IncomingPoll, IncomingPush, RecordOutcome } from '../flow/ports.ts'

/**
 * A batch as it travels to the writer's thread. A message of many small objects, each body dragging along the network buffer it was read
 * into, costs more than recording it: here all bodies are one block of bytes that changes hands without being copied.
 */
export interface PackedBatch {
  /** The bodies of the pushes, one after the other. */
  readonly bytes: ArrayBuffer
  /** A column each, one value a push. */
  readonly lengths: readonly number[]
  readonly receivedAtMs: readonly number[]
  readonly keyIndex: readonly number[]
  readonly contentEncoding: readonly (string | null)[]
  /** Polls, with their place in the batch. */
  readonly polls: readonly (readonly [place: number, poll: IncomingPoll])[]
}

export function packBatch(batch: readonly Incoming[]): PackedBatch {
  const pushes = batch.filter((incoming) => incoming.kind === 'push')
  const bytes = new Uint8Array(pushes.reduce((sum, { body }) => sum + body.byteLength, 0))
  let at = 0
  for (const { body } of pushes) {
    bytes.set(body, at)
    at += body.byteLength
  }
  return {
    bytes: bytes.buffer,
    lengths: pushes.map(({ body }) => body.byteLength),
    receivedAtMs: pushes.map((push) => push.receivedAtMs),
    keyIndex: pushes.map((push) => push.keyIndex),
    contentEncoding: pushes.map((push) => push.contentEncoding),
    polls: batch.flatMap((incoming, place) => (incoming.kind === 'poll' ? [[place, incoming] as const] : [])),
  }
}

/** The batch as it was packed, in its order. */
export function unpackBatch(packed: PackedBatch): readonly Incoming[] {
  const polls = new Map(packed.polls)
  let at = 0
  const pushes = packed.lengths.map((length, index): IncomingPush => {
    const body = Buffer.from(packed.bytes, at, length)
    at += length
    return {
      kind: 'push',
      body,
      receivedAtMs: packed.receivedAtMs[index] ?? 0,
      keyIndex: packed.keyIndex[index] ?? 0,
      contentEncoding: packed.contentEncoding[index] ?? null,
    }
  })
  const inOrder = pushes.values()
  return Array.from({ length: pushes.length + polls.size }, (_, place) => polls.get(place) ?? inOrder.next().value).filter(
    (incoming) => incoming !== undefined,
  )
}

/** What became of a batch, as it travels back. */
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
