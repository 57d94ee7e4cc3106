import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import type { FeedEntry } from '../../domain/delivery/feed-entry.ts'
import type { WriteSide } from '../write-side.ts'
import type { WriteStore, WriteTx } from '../write-store.ts'
import { enqueue } from './enqueue.tx.ts'

/**
 * Queues the feed for endpoints that start further back, a part at a time. Until such an endpoint has caught up, new events are not queued
 * for it directly but come from the feed too, after the older ones. Its position is in the store, so a restart continues there.
 */
export function createReplayFeed(store: WriteStore): Pick<WriteSide, 'replayFeed'> {
  return {
    replayFeed: ({ limit, nowMs }) =>
      store.transaction(
        async (tx) => {
          // The one furthest behind first, so that none waits for another to finish.
          const [behind, ...others] = (await tx.listEndpoints()).filter(isBehind).sort((a, b) => a.queuedTo - b.queuedTo)
          if (behind === undefined) return { queued: 0, isDone: true }
          const { entries, next, ended } = await tx.readFeedEntries({ after: behind.queuedTo, limit })
          let queued = 0
          for (const entry of entries) queued += await queueEntry(tx, behind, entry, nowMs)
          await tx.saveEndpoint({ ...behind, queuedTo: ended ? null : next })
          return { queued, isDone: ended && others.length === 0 }
        },
        { ofRole: true, announced: true },
      ),
  }
}

function isBehind(state: EndpointState): state is EndpointState & { readonly queuedTo: number } {
  return state.queuedTo !== null
}

async function queueEntry(tx: WriteTx, state: EndpointState, event: FeedEntry, nowMs: number): Promise<number> {
  return await enqueue(tx, [state], { ...event, nowMs })
}
