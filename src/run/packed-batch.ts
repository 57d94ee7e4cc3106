import type { Incoming, IncomingPoll, IncomingPush } from '../flow/ports.ts'

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
