import type { Audited } from '../../domain/admin/operator-action.ts'
import type { ReplayedBatch, ReplayRequest, RetryOutcome } from '../../domain/delivery/delivery-list.ts'
import { probeSoon, wakeWaiting } from '../../domain/delivery/endpoint-health.ts'
import { type CatchingUp, type EndpointState, takes } from '../../domain/delivery/endpoint-state.ts'
import type { FeedNews } from '../../domain/delivery/feed-entry.ts'
import { planDeliveries } from '../../domain/delivery/plan-events.ts'
import { encodeWatchdogEvent, eventOf, filteredOf } from '../../domain/delivery/watchdog-event.ts'
import { cancelRemoved } from '../../store/delivery/deliveries.ts'
import { hastenDelivery } from '../../store/delivery/next-deliveries.ts'
import { skipDelivery, unskipDelivery } from '../../store/delivery/settlements.ts'
import type { Transactions, WriteTx } from '../../store/write-store.ts'
import { audit } from '../audit.tx.ts'

/**
 * Creates the verbs with which an operator makes waiting deliveries due now, for example after a receiver was repaired, or gives up a
 * delivery (DOMAIN 7.4).
 */
export function createRetryNow(store: Transactions) {
  return {
    /**
     * Makes all waiting deliveries of an endpoint due now. `done`: they are due. `unknown`: there is no such endpoint. `disabled`: the endpoint
     * is disabled, so nothing has changed.
     */
    retryEndpoint: ({ id, nowMs, ...order }: Audited & { readonly id: string; readonly nowMs: number }) =>
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

    /** Makes one delivery due now, before all other waiting deliveries of its endpoint. */
    retryDelivery: ({ deliveryId, nowMs, ...order }: Audited & { readonly deliveryId: number; readonly nowMs: number }) =>
      store.transaction(
        async (tx): Promise<RetryOutcome> => {
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

    /**
     * Marks a waiting delivery as skipped. The replica that delivers to its endpoint ends it (`dead`, reason `skipped`) in its next dispatch
     * round, or when the running attempt ends. Then the parcel's next delivery is sent. `done`: the delivery is marked. `unknown`: there is no
     * such delivery. `ended`: it had ended before.
     */
    skipDelivery: ({ deliveryId, ...order }: Audited & { readonly deliveryId: number }) =>
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

/** Creates the verbs that queue events again, or for endpoints that start at an older position. */
export function createReplays(store: Transactions) {
  return {
    /** Queues a batch of ended deliveries again, under the same event ids. Null: nothing can be queued for the endpoint now. */
    replayDeliveries: ({ action, ...request }: ReplayRequest & Audited) =>
      store.transaction(
        async (tx) => {
          const batch = await replayBatch(tx, request)
          if (action !== undefined && batch !== null && batch.count > 0) audit(tx, { action })
          return batch
        },
        { announced: true },
      ),
    /**
     * Marks a batch of deliveries of removed endpoints as cancelled. `isDone`: none is left. Any replica may do this, because an order to replay
     * does it first. To do it twice changes nothing.
     */
    cancelRemoved: ({ limit }: { readonly limit: number }) => store.transaction((tx) => cancelRemoved(tx, limit)),
    /**
     * Queues a part of the feed for one endpoint that is catching up. Until such an endpoint has caught up, new events are queued for it here,
     * too, after the older ones. Its position is in the store, so the work continues after a restart. `hasAdvanced`: an endpoint was catching up.
     * `queued`: how many deliveries were queued for it. `isDone`: no endpoint is catching up any more.
     */
    replayFeed: ({ limit, nowMs }: { readonly limit: number; readonly nowMs: number }) =>
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

/** Replays within a transaction of the caller. Null: the endpoint was removed meanwhile, or it is catching up and gets these events anyway. */
export async function replayBatch(tx: WriteTx, request: ReplayRequest): Promise<ReplayedBatch | null> {
  const to = (await tx.listEndpoints()).find(({ endpoint }) => endpoint.id === request.to)
  if (to === undefined || to.queuedTo !== null) return null
  return await tx.replayDeliveries(request)
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
