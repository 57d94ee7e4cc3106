import type { Incoming } from '../../domain/history/recording.ts'
import type { CommitQueue, CommitReport, Committed } from '../group-commit.ts'
import { openConsumer, openProducer, type RingBuffer, type RingConsumer } from './ring-buffer.ts'
import { asError } from './thread.ts'

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

export interface WriterQueueOptions {
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
