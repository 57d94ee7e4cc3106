import type { Incoming } from '../../domain/history/recording.ts'
import type { CommitQueue, CommitReport, Committed } from '../commit-queue.ts'
import type { CommitThrottle } from './commit-throttle.ts'
import { openConsumer, openProducer, type RingBuffer, type RingConsumer } from './ring-buffer.ts'
import { asError } from './thread.ts'

/**
 * The calls that the writer's thread serves for another thread. Observations come through a ring buffer, and their outcomes go back as
 * messages.
 */
export interface RingVerbs {
  /** Records the observations in the ring when its turn comes. */
  commit(): Promise<Committed>
  /** Delivers an observation whose entry in the ring is empty. */
  bring(incoming: Incoming): Promise<void>
}

export interface WriterQueueOptions {
  /** Larger bodies are sent by message, because an entry must fit into half of the ring. */
  readonly bodyBytesMax: number
  readonly drainReplies?: () => void
}

/** A queue whose observations the writer's thread records. */
export function queueOnWriter(ring: RingBuffer, verbs: RingVerbs, { bodyBytesMax, drainReplies }: WriterQueueOptions): CommitQueue {
  const producer = openProducer(ring)
  // Each commit begins with one read. When the producer counts this many reads, the last requested commit has begun. The number wraps at 32
  // bits.
  let readsAwaited = 0
  return {
    ...(drainReplies === undefined ? {} : { drainReplies }),
    put(incoming) {
      if (incoming.kind === 'push' && incoming.body.byteLength <= bodyBytesMax) return producer.put(incoming)
      if (!producer.putByMessage()) return false
      // If the thread is gone, the commit fails too, and reports it.
      verbs.bring(incoming).catch(() => {})
      return true
    },
    isAwaited: () => readsAwaited !== producer.reads(),
    async commit() {
      readsAwaited = (readsAwaited + 1) | 0
      try {
        return await verbs.commit()
      } catch (error) {
        // The thread is gone, so the requested commits may never begin. Stop waiting for them.
        readsAwaited = producer.reads()
        throw error
      }
    },
  }
}

export interface RingServicePorts {
  readonly record: (batch: readonly Incoming[]) => Promise<CommitReport>
  readonly throttle: Pick<CommitThrottle, 'keep' | 'begins'>
  /** The maximum of observations in one transaction. */
  readonly batchMax: number
}

/** The writer's side, which serves each ring. The throttle counts the observations that wait in all rings. */
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
