import type { Incoming } from '../../domain/history/recording.ts'
import type { CommitQueue, CommitReport, Committed } from '../commit-queue.ts'
import type { CommitThrottle } from './commit-throttle.ts'
import { openConsumer, openProducer, type RingBuffer, type RingConsumer } from './ring-buffer.ts'
import { asError } from './thread.ts'

/** What the writer's thread offers to the others: observations come through a ring buffer, and their outcomes go back as messages. */
export interface RingVerbs {
  /** Records what is in the ring when its turn comes. */
  commit(): Promise<Committed>
  /** Delivers an observation that has only its place in the ring. */
  bring(incoming: Incoming): Promise<void>
}

export interface WriterQueueOptions {
  /** Larger bodies go by message, because an entry must fit into half of the ring. */
  readonly bodyBytesMax: number
  readonly drainReplies?: () => void
}

/** A queue that the writer's thread records. */
export function queueOnWriter(ring: RingBuffer, verbs: RingVerbs, { bodyBytesMax, drainReplies }: WriterQueueOptions): CommitQueue {
  const producer = openProducer(ring)
  // How many reads there will have been when the last requested commit has begun: each begins with one read. Wraps as they do.
  let readsAwaited = 0
  return {
    ...(drainReplies === undefined ? {} : { drainReplies }),
    put(incoming) {
      if (incoming.kind === 'push' && incoming.body.byteLength <= bodyBytesMax) return producer.put(incoming)
      if (!producer.putElsewhere()) return false
      // If the thread is gone, the commit fails too and reports it.
      verbs.bring(incoming).catch(() => {})
      return true
    },
    isAwaited: () => readsAwaited !== producer.reads(),
    async commit() {
      readsAwaited = (readsAwaited + 1) | 0
      try {
        return await verbs.commit()
      } catch (error) {
        // The call failed, so none of the requested commits may come.
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

/** The writer's end: makes the verbs for each ring. The throttle counts what waits in all rings. */
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
