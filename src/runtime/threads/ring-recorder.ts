import type { Incoming } from '../../domain/history/recording.ts'
import type { CommitQueue, CommitReport } from '../commit-queue.ts'
import type { CommitThrottle } from './commit-throttle.ts'
import { openConsumer, openProducer, type RingBuffer, type RingConsumer } from './ring-buffer.ts'
import { asError } from './thread.ts'

/** What the thread that records offers to another one: pushes come by a ring of memory both see, and what became of them comes back as a message. */
export interface RingVerbs {
  /** Records what is in the ring by then. */
  commit(): Promise<RingCommit>
  /** What has only its place in the ring. */
  bring(incoming: Incoming): Promise<void>
}

export const RING_VERBS = ['commit', 'bring'] as const

type RingCommit = { readonly taken: number; readonly report: CommitReport } | { readonly taken: number; readonly error: unknown }

export interface WriterQueueOptions {
  /** Larger bodies come by message, as what is in the ring must fit into half of it. */
  readonly bodyBytesMax: number
  readonly drainReplies?: () => void
}

/** A queue that the writer's thread records from. */
export function queueOnWriter(ring: RingBuffer, verbs: RingVerbs, { bodyBytesMax, drainReplies }: WriterQueueOptions): CommitQueue {
  const inlet = openProducer(ring)
  let asked = 0
  return {
    ...(drainReplies === undefined ? {} : { drainReplies }),
    put(incoming) {
      if (incoming.kind === 'push' && incoming.body.byteLength <= bodyBytesMax) return inlet.put(incoming)
      if (!inlet.putElsewhere()) return false
      // If the thread is gone, so is the commit that would find it, which says so.
      verbs.bring(incoming).catch(() => {})
      return true
    },
    isAwaited: () => asked !== inlet.looks(),
    async commit() {
      asked = (asked + 1) | 0
      try {
        return await verbs.commit()
      } catch (error) {
        asked = inlet.looks()
        throw error
      }
    },
  }
}

export interface RingServicePorts {
  readonly record: (batch: readonly Incoming[]) => Promise<CommitReport>
  readonly pace: Pick<CommitThrottle, 'keep' | 'begins'>
  /** The most of one transaction. */
  readonly batchMax: number
}

/** The other end, on the thread: gives whoever puts into a ring the verbs for it. A commit knows of all that wait, in whichever ring. */
export function createRingService({ record, pace, batchMax }: RingServicePorts): (ring: RingBuffer) => RingVerbs {
  const outlets: RingConsumer<Incoming>[] = []
  const waiting = () => outlets.reduce((sum, outlet) => sum + outlet.count(), 0)
  return (ring) => {
    const brought: Incoming[] = []
    const outlet = openConsumer(ring, () => brought.shift())
    outlets.push(outlet)
    return {
      async bring(incoming) {
        brought.push(incoming)
      },
      async commit() {
        pace.keep(waiting())
        const batch = outlet.take(batchMax)
        pace.begins(batch.length)
        try {
          return { taken: batch.length, report: await record(batch) }
        } catch (error) {
          return { taken: batch.length, error: asError(error) }
        }
      },
    }
  }
}
