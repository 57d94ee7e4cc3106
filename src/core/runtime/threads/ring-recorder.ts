import type { Incoming } from '../../domain/history/recording.ts'
import type { CommitQueue, CommitReport, Committed } from '../commit-queue.ts'
import type { CommitThrottle } from './commit-throttle.ts'
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
