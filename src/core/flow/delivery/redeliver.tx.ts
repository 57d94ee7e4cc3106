import { probeSoon, wakeWaiting } from '../../domain/delivery/endpoint-health.ts'
import { type CatchingUp, type EndpointState, takes } from '../../domain/delivery/endpoint-state.ts'
import type { FeedNews } from '../../domain/delivery/feed-entry.ts'
import { planDeliveries } from '../../domain/delivery/plan-events.ts'
import { encodeWatchdogEvent, eventOf, filteredOf } from '../../domain/delivery/watchdog-event.ts'
import { hastenDelivery } from '../../store/delivery/next-deliveries.ts'
import { skipDelivery, unskipDelivery } from '../../store/delivery/settlements.ts'
import type { Transactions } from '../../store/write-store.ts'
import { audit } from '../audit.tx.ts'
import type { WriteSide } from '../write-side.ts'

/**
 * Creates the verbs with which an operator makes waiting deliveries due now, for example after a receiver was repaired, or gives up a
 * delivery (DOMAIN 7.4).
 */
export function createRetryNow(store: Transactions): Pick<WriteSide, 'retryEndpoint' | 'retryDelivery' | 'skipDelivery'> {
  return {
    retryEndpoint: ({ id, nowMs, ...order }) =>
      store.transaction(
        async (tx) => {
          const state = (await tx.listEndpoints()).find(({ endpoint }) => endpoint.id === id)
          if (state === undefined) return 'unknown'
          if (state.disabled !== null) return 'disabled'
          tx.saveHealth(id, wakeWaiting(state.health, nowMs))
          audit(tx, order)
          return 'done'
        },
        { announced: true },
      ),

    retryDelivery: ({ deliveryId, nowMs, ...order }) =>
      store.transaction(
        async (tx) => {
          const found = await hastenDelivery(tx, deliveryId)
          if (found === null) return 'unknown'
          const state = (await tx.listEndpoints()).find(({ endpoint }) => endpoint.id === found.endpointId)
          if (found.state !== 'due' || state === undefined) return found.state === 'behind' ? 'behind' : 'ended'
          if (state.disabled !== null) return 'disabled'
          unskipDelivery(tx, deliveryId)
          tx.saveHealth(found.endpointId, probeSoon(state.health, nowMs))
          audit(tx, order)
          return 'done'
        },
        { announced: true },
      ),

    skipDelivery: ({ deliveryId, ...order }) =>
      store.transaction(
        async (tx) => {
          const done = (await skipDelivery(tx, deliveryId)) ?? 'unknown'
          if (done === 'done') audit(tx, order)
          return done
        },
        { announced: true },
      ),
  }
}

/**
 * Queues older events of the feed, a part at a time, for endpoints that start at an older position. Until such an endpoint has caught up, new
 * events are queued for it here, too, after the older ones. Its position is in the store, so the work continues after a restart.
 */
export function createReplayFeed(store: Transactions): Pick<WriteSide, 'replayFeed'> {
  return {
    replayFeed: ({ limit, nowMs }) =>
      store.transaction(
        async (tx) => {
          // Take the endpoint that is furthest behind, so that no endpoint has to wait until another one has caught up.
          const [behind, ...others] = (await tx.listEndpoints()).filter(isBehind).sort((a, b) => a.queuedTo - b.queuedTo)
          if (behind === undefined) return { hasAdvanced: false, queued: 0, isDone: true }
          const { entries, news, next, ended } = await tx.readFeedEntries({ endpointId: behind.endpoint.id, after: behind.queuedTo, limit })
          // Parcels that were joined may both have reported an entry. Only the first event is sent.
          const told = new Set<number>()
          const planned = entries.map((feedEntry) => {
            const isTold = told.has(feedEntry.entry.sequence)
            const plan = planDeliveries(isTold ? [] : [behind], { ...feedEntry, nowMs })
            if (plan.deliveries.length > 0) told.add(feedEntry.entry.sequence)
            return { entry: feedEntry, ...plan }
          })
          const ofNews = news.flatMap((one) => planNews(behind, one, nowMs))
          const composed = [
            ...planned.flatMap(({ entry, composed: body }) => (body === null ? [] : { sequence: entry.sequence, body })),
            ...ofNews.map(({ delivery: { sequence }, body }) => ({ sequence, body })),
          ]
          const deliveries = [...planned.flatMap((one) => one.deliveries), ...ofNews.map((one) => one.delivery)].sort(
            (a, b) => a.sequence - b.sequence,
          )
          await tx.queueFeed({ composed, deliveries })
          const isOver = await tx.saveQueuedTo(behind, { next, ended })
          return { hasAdvanced: true, queued: deliveries.length, isDone: isOver && others.length === 0 }
        },
        { ofRole: 'janitor', announced: ({ hasAdvanced }) => hasAdvanced },
      ),
  }
}

/** Plans the delivery of what a watchdog told, if the endpoint asks for it. */
function planNews({ endpoint }: CatchingUp, { sequence, told, parcel }: FeedNews, nowMs: number) {
  if (!takes(endpoint, eventOf(told.kind), filteredOf(parcel))) return []
  const delivery = { endpointId: endpoint.id, parcelId: parcel.parcelId, sequence, inboxId: null, toldIn: null, nowMs }
  return [{ delivery, body: encodeWatchdogEvent(told, parcel) }]
}

function isBehind(state: EndpointState): state is CatchingUp {
  return state.queuedTo !== null
}
