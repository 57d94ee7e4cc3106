import type { Incoming } from '../../domain/history/recording.ts'
import type { IncomingPush } from '../../domain/ingest/inbox.ts'
import type { CommitQueue, CommitReport, Committed } from '../group-commit.ts'
import { createEventDecoder, createEventEncoder } from './event-codec.ts'
import { asError } from './thread.ts'

/**
 * A ring buffer for one producer and one consumer. It passes pushes to the writer's thread in shared memory. Large pushes and other
 * observations are sent as messages. For each of them, the buffer has an empty entry.
 */
export type RingBuffer = ReturnType<typeof createRingBuffer>

/** In place of the length of a body, this means that the observation comes by message. */
const BY_MESSAGE = -1
/** In place of the length of a body, this means that the next entry is at the start of the memory. */
const TURN = -2
/** In place of the length of a content encoding, this means that the push has none. */
const NONE = -1

const TAKEN_TO = 0
const PUT_TO = 1
const READS = 2
/** The number of entries put. Like the number of reads, it wraps at 32 bits. */
const PUTS = 3

const WORD = 8
/** Positions in the head of an entry, counted in 32-bit numbers. */
const BODY_BYTES = 0
const ENCODING_BYTES = 1
const TEXT_BYTES = 2
const KEY_INDEX = 3
/** Positions in the head, counted in 64-bit numbers. */
const RECEIVED_AT = 2
const EVENT_AT = 3
/** A position in the head, counted in 32-bit numbers, after the 64-bit fields. */
const CONTENT = 8
const HEAD_BYTES = 5 * WORD

export function createRingBuffer(bytes: number) {
  return {
    /** The entries one after the other, each a whole number of 8-byte words: head, body, content encoding, and the encoded event. */
    memory: new SharedArrayBuffer(wholeWords(bytes)),
    /** The read position, the write position, the number of reads, and the number of entries put. */
    state: new Int32Array(new SharedArrayBuffer(4 * Int32Array.BYTES_PER_ELEMENT)),
  }
}

export function openProducer({ memory, state }: RingBuffer) {
  const { bytes, numbers, times } = viewOf(memory)
  const encoder = createEventEncoder()

  /**
   * Returns the position for an entry of `wanted` bytes. Null: there is no room now. The buffer is never filled completely: in a full buffer
   * the read and the write position would be equal, as in an empty buffer.
   */
  function room(wanted: number): number | null {
    const from = Atomics.load(state, TAKEN_TO)
    const to = Atomics.load(state, PUT_TO)
    if (to < from) return to + wanted < from ? to : null
    if (to + wanted < memory.byteLength || (to + wanted === memory.byteLength && from > 0)) return to
    if (wanted >= from) return null
    numbers[to / 4] = TURN
    return 0
  }

  function publish(end: number): void {
    Atomics.add(state, PUTS, 1)
    Atomics.store(state, PUT_TO, end === memory.byteLength ? 0 : end)
  }

  return {
    /** False: there is no room now. */
    put({ body, contentEncoding, keyIndex, receivedAtMs, reading }: IncomingPush) {
      const { text, content } = encoder.encode(reading)
      const textBytes = Buffer.byteLength(text)
      const encodingBytes = contentEncoding === null ? 0 : Buffer.byteLength(contentEncoding)
      const wanted = wholeWords(HEAD_BYTES + body.byteLength + encodingBytes + textBytes)
      const at = room(wanted)
      if (at === null) return false
      numbers[at / 4 + BODY_BYTES] = body.byteLength
      numbers[at / 4 + ENCODING_BYTES] = contentEncoding === null ? NONE : encodingBytes
      numbers[at / 4 + TEXT_BYTES] = textBytes
      numbers[at / 4 + KEY_INDEX] = keyIndex
      numbers[at / 4 + CONTENT] = content
      times[at / WORD + RECEIVED_AT] = receivedAtMs
      times[at / WORD + EVENT_AT] = reading.ok ? reading.observation.sighting.instant.atMs : 0
      const bodyAt = at + HEAD_BYTES
      bytes.set(body, bodyAt)
      if (contentEncoding !== null) bytes.write(contentEncoding, bodyAt + body.byteLength)
      bytes.write(text, bodyAt + body.byteLength + encodingBytes)
      publish(at + wanted)
      encoder.sent()
      return true
    },
    /** Puts an empty entry for an observation that comes by message, so that the order is kept. False: there is no room now. */
    putByMessage() {
      const at = room(WORD)
      if (at === null) return false
      numbers[at / 4 + BODY_BYTES] = BY_MESSAGE
      publish(at + WORD)
      return true
    },
    /** Returns how often the consumer has read. The number wraps at 32 bits. */
    reads: () => Atomics.load(state, READS),
  }
}

export interface RingConsumer<Other> {
  /** Returns how many entries were put and not taken yet. */
  count(): number
  /** Takes at most `most` entries, in order. Their bytes are copies. */
  take(most: number): (IncomingPush | Other)[]
}

/**
 * Opens the consumer's side. `nextMessage` returns the next observation that came by message. If it returns undefined, the message has not
 * arrived yet, and `take` stops before the entry of that observation.
 */
export function openConsumer<Other>({ memory, state }: RingBuffer, nextMessage: () => Other | undefined): RingConsumer<Other> {
  const { bytes, numbers, times } = viewOf(memory)
  const decodeEvent = createEventDecoder()
  let takenSoFar = 0

  const number = (at: number, position: number) => numbers[at / 4 + position] ?? 0
  const time = (at: number, position: number) => times[at / WORD + position] ?? 0
  const sizeOf = (at: number) =>
    wholeWords(HEAD_BYTES + number(at, BODY_BYTES) + Math.max(0, number(at, ENCODING_BYTES)) + number(at, TEXT_BYTES))

  function read(at: number): IncomingPush {
    const bodyEnd = at + HEAD_BYTES + number(at, BODY_BYTES)
    const encodingBytes = number(at, ENCODING_BYTES)
    const textAt = bodyEnd + Math.max(0, encodingBytes)
    const text = bytes.toString('utf8', textAt, textAt + number(at, TEXT_BYTES))
    return {
      kind: 'push',
      body: Buffer.from(bytes.subarray(at + HEAD_BYTES, bodyEnd)),
      contentEncoding: encodingBytes === NONE ? null : bytes.toString('utf8', bodyEnd, textAt),
      keyIndex: number(at, KEY_INDEX),
      receivedAtMs: time(at, RECEIVED_AT),
      reading: decodeEvent({ text, content: number(at, CONTENT) }, time(at, EVENT_AT)),
    }
  }

  return {
    count: () => (Atomics.load(state, PUTS) - takenSoFar) | 0,
    take(most) {
      // Count this read before reading. If the producer puts an entry and then sees the old count, the next read is sure to find the entry.
      Atomics.add(state, READS, 1)
      const to = Atomics.load(state, PUT_TO)
      const taken: (IncomingPush | Other)[] = []
      let at = Atomics.load(state, TAKEN_TO)
      while (at !== to && taken.length < most) {
        const first = number(at, BODY_BYTES)
        if (first === TURN) {
          at = 0
          continue
        }
        const other = first === BY_MESSAGE ? nextMessage() : read(at)
        if (other === undefined) break
        taken.push(other)
        at += first === BY_MESSAGE ? WORD : sizeOf(at)
        if (at === memory.byteLength) at = 0
      }
      Atomics.store(state, TAKEN_TO, at)
      takenSoFar = (takenSoFar + taken.length) | 0
      return taken
    },
  }
}

function viewOf(memory: SharedArrayBuffer) {
  return { bytes: Buffer.from(memory), numbers: new Int32Array(memory), times: new Float64Array(memory) }
}

function wholeWords(bytes: number): number {
  return Math.ceil(bytes / WORD) * WORD
}

/**
 * The calls that the writer's thread serves for another thread. Observations come through a ring buffer. Outcomes go back as messages, because
 * they are results of `commit`.
 */
export interface RingVerbs {
  /** Records observations from the ring as one batch. */
  commit(): Promise<Committed>
  /** Passes an observation that is too large for the ring. Its entry in the ring is empty. */
  bring(incoming: Incoming): Promise<void>
}

interface WriterQueueOptions {
  /** Pushes with larger bodies are sent by message, because an entry must fit into half of the ring. */
  readonly bodyBytesMax: number
  readonly drainReplies?: () => void
}

/** Creates a queue whose observations the writer's thread records. */
export function queueOnWriter(ring: RingBuffer, verbs: RingVerbs, { bodyBytesMax, drainReplies }: WriterQueueOptions): CommitQueue {
  const producer = openProducer(ring)
  // The number of requested commits. The writer reads the ring once at the start of each commit, so while it has read less often, a requested
  // commit has not begun. Both numbers wrap at 32 bits.
  let readsAwaited = 0
  return {
    ...(drainReplies === undefined ? {} : { drainReplies }),
    put(incoming) {
      if (incoming.kind === 'push' && incoming.body.byteLength <= bodyBytesMax) return producer.put(incoming)
      if (!producer.putByMessage()) return false
      // Ignore this failure: if the thread is gone, the commit fails too, and its failure is reported.
      verbs.bring(incoming).catch(() => {})
      return true
    },
    isAwaited: () => readsAwaited !== producer.reads(),
    async commit() {
      readsAwaited = (readsAwaited + 1) | 0
      try {
        return await verbs.commit()
      } catch (error) {
        // The writer's thread is gone, so the requested commits will never begin. Stop waiting for them.
        readsAwaited = producer.reads()
        throw error
      }
    },
  }
}

export interface RingServicePorts {
  readonly record: (batch: readonly Incoming[]) => Promise<CommitReport>
  readonly throttle: Pick<CommitThrottle, 'keep' | 'begins'>
  readonly batchMax: number
}

/** Creates the writer's side, a function that serves one ring. The throttle counts the observations that wait in all rings. */
export function createRingService({ record, throttle, batchMax }: RingServicePorts): (ring: RingBuffer) => RingVerbs {
  const consumers: RingConsumer<Incoming>[] = []
  const waiting = () => consumers.reduce((sum, consumer) => sum + consumer.count(), 0)
  return (ring) => {
    const brought: Incoming[] = []
    const consumer = openConsumer(ring, () => brought.shift())
    consumers.push(consumer)
    return {
      async bring(incoming) {
        brought.push(incoming)
      },
      async commit() {
        throttle.keep(waiting())
        const batch = consumer.take(batchMax)
        throttle.begins(batch.length)
        try {
          return { taken: batch.length, report: await record(batch) }
        } catch (error) {
          return { taken: batch.length, error: asError(error) }
        }
      },
    }
  }
}

/** No thread ever notifies this, so `Atomics.wait` on it always lasts until its time-out. It is more precise than a timer of the event loop. */
const NEVER = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))

/**
 * How long `isBusy` stays true after many observations were waiting. Under full load, commits are only a few milliseconds apart and many
 * observations wait at each, so `isBusy` is always true.
 */
const BUSY_MS = 20

type CommitThrottle = ReturnType<typeof createCommitThrottle>

/**
 * Creates a throttle that keeps commits `everyMs` apart while few observations wait. A commit costs as much as recording several observations,
 * so fewer and larger commits leave more processor time to other threads. If `many` or more observations wait, or if the last commit had at
 * most one observation, the next commit begins at once.
 */
export function createCommitThrottle(
  { everyMs, many }: { readonly everyMs: number; readonly many: number },
  monotonic: () => number,
  stopThread: (ms: number) => void = (ms) => void Atomics.wait(NEVER, 0, 0, ms),
) {
  let nextMs = 0
  let busyUntilMs = Number.NEGATIVE_INFINITY
  return {
    /** Blocks the thread until the next commit may begin, unless many observations wait. Call it before each commit. */
    keep(waiting: number) {
      const nowMs = monotonic()
      const leftMs = nextMs - nowMs
      if (waiting >= many) busyUntilMs = nowMs + BUSY_MS
      if (waiting < many && leftMs > 0) stopThread(leftMs)
    },
    /** Call it when a commit begins. `size`: the number of observations in its batch. */
    begins(size: number) {
      nextMs = size > 1 ? monotonic() + everyMs : 0
    },
    isBusy: () => monotonic() < busyUntilMs,
  }
}
