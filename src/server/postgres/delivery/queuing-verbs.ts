import { type Selectable, sql } from 'kysely'
import {
  type FeedEntries,
  type FeedEntriesRequest,
  type FeedEntry,
  type FeedParcel,
  updateEvent,
} from '../../../core/domain/delivery/feed-entry.ts'
import { deriveEntries, instantsTie, orderHistory } from '../../../core/domain/history/history.ts'
import { NO_CONTEXT } from '../../../core/domain/history/order-context.ts'
import { presentParcel } from '../../../core/domain/history/pull-response.ts'
import { feedEntriesOf, leaveOutSent, survivorOf } from '../../../core/store/delivery/feed.ts'
import { loadAnswersOf } from '../../../core/store/history/answers.ts'
import { contextRow, loadContexts } from '../../../core/store/history/order-contexts.ts'
import { loadIdentifiersOf } from '../../../core/store/history/parcels.ts'
import { loadOrders } from '../../../core/store/history/sightings.ts'
import type { Tables } from '../../../core/store/schema.ts'
import type { WriteTx } from '../../../core/store/write-store.ts'
import type { TransactionEnd } from '../counter.ts'
import { type BatchSource, enqueueFeed, readWhole } from '../history/apply-batch.ts'
import type { TransactionContents } from '../history/postgres-contents.ts'
import { real } from '../history/provisional.ts'
import type { PostgresSession } from '../postgres.ts'
import { type Columns, enqueueRows, rawStatement } from '../postgres-dialect.ts'
import { metAnother } from '../postgres-failure.ts'
import { enqueueComposed, enqueueDeliveries, lockQueues } from './queue-deliveries.ts'
import type { TransactionEndpoints } from './transaction-endpoints.ts'

/** Fails as a conflict (by a division by zero) if another transaction has queued events for the endpoint since this one read the endpoint. */
const advanceQueue = rawStatement<{ id: number; before: number; next: number }>()(
  (p) => sql`
    update endpoint set queued_to = ${p.next}::bigint / (case when queued_to = ${p.before}::bigint then 1 else 0 end) where id = ${p.id}::bigint`,
)
const endQueue = rawStatement<{ id: number; next: number }>()(
  (p) => sql`
    update endpoint set queued_to = null where id = ${p.id}::bigint and not exists (select 1 from feed where sequence > ${p.next}::bigint)`,
)
const showEnd = rawStatement<{ id: number }>()(
  (p) => sql`
    update counter set version = version + 1
    where name = 'sequence' and exists (select 1 from endpoint where id = ${p.id}::bigint and queued_to is null)`,
)

const insertContexts = rawStatement<Columns<ReturnType<typeof contextRow>>>()(
  (p) => sql`
    insert into order_context (parcel_id, sequence, reference, labels, note)
    select u.parcel_id, ${real(sql.ref('u.sequence'))}, u.reference, u.labels, u.note
    from unnest(${p.parcelId}::bigint[], ${p.sequence}::bigint[], ${p.reference}::text[], ${p.labels}::text[], ${p.note}::text[])
      as u (parcel_id, sequence, reference, labels, note)
    on conflict (parcel_id) do update set
      sequence = excluded.sequence, reference = excluded.reference, labels = excluded.labels, note = excluded.note`,
)

export interface QueuingParts {
  readonly session: PostgresSession
  readonly contents: TransactionContents
  readonly endpoints: TransactionEndpoints
  readonly end: TransactionEnd
}

/** Makes those methods of a transaction that queue deliveries of operator events, or of events that are already in the feed. */
export function queuingVerbs({ session, contents, endpoints, end }: QueuingParts) {
  return {
    readFeedEntries: (request) => readFeedInSets({ session, contents }, request),
    saveContexts(changes) {
      const contexts = changes.map((change) => ({ ...change, sequence: end.give() }))
      end.whenNumbered(() => {
        enqueueRows(session, insertContexts, contexts.map(contextRow))
        enqueueFeed(
          session,
          contexts.map(({ sequence, parcelId }) => updateEvent(sequence, parcelId)),
        )
      })
    },
    async queueComposed({ body, ...delivery }) {
      const sequence = end.give()
      lockQueues(session, delivery.endpointId, [delivery.parcelId])
      end.whenNumbered(() => {
        enqueueComposed(session, [{ sequence, body }])
        enqueueDeliveries(session, [{ ...delivery, sequence, inboxId: null, toldIn: null }])
      })
    },
    async queueFeed({ composed, deliveries }) {
      enqueueComposed(session, composed)
      enqueueDeliveries(session, deliveries)
    },
    /**
     * Other transactions may have added events since the feed was read. So look for events after `next` once more, right before the commit
     * and with the counter locked. If there are none, the endpoint has caught up. Then raise the version of the endpoints, so that the next
     * recording transaction reads the endpoint again.
     */
    async saveQueuedTo({ endpoint, queuedTo }, { next, ended }) {
      const id = Number(endpoint.id)
      session.enqueueWrite(advanceQueue, { id, before: queuedTo, next })
      endpoints.stay()
      if (ended) {
        end.whenNumbered(() => {
          session.enqueueWrite(endQueue, { id, next })
          session.enqueueWrite(showEnd, { id })
        })
      }
      return false
    },
  } satisfies Partial<WriteTx>
}

type HeldRow = Pick<Selectable<Tables['feed']>, 'sequence' | 'entry' | 'payload_ref' | 'earlier_audience' | 'earlier_tellings'> & {
  /** The parcel that has the event's history after all joins; null: the event is not sent to endpoints. */
  readonly holder: number | null
  readonly has_body: boolean
}

const HELD = sql`
  sequence, entry, payload_ref, earlier_audience, earlier_tellings,
  case when payload_ref is not null then ${survivorOf(sql.ref('feed.parcel_id'), sql.ref('feed.sequence'))} end as holder`
const eventsBetween = rawStatement<{ after: number; upTo: number; limit: number }>()(
  (p) => sql<HeldRow>`
    select ${HELD}, exists (select 1 from inbox where inbox.id = feed.payload_ref and inbox.body is not null) as has_body
    from feed where sequence > ${p.after} and sequence <= ${p.upTo} order by sequence limit ${p.limit}`,
)
const lockParcels = rawStatement<{ ids: readonly number[] }>()(
  (p) => sql<{ id: number }>`select id from parcel where id = any(${p.ids}::bigint[]) order by id for no key update`,
)

/** See `WriteTx.readFeedEntries`. */
async function readFeedInSets(source: BatchSource, { endpointId, after, limit }: FeedEntriesRequest): Promise<FeedEntries> {
  const { session } = source
  const found = await session.all(eventsBetween, { after, upTo: Number.MAX_SAFE_INTEGER, limit })
  const next = found.at(-1)?.sequence ?? after
  const entries = await readHeld(source, found, () => session.all(eventsBetween, { after, upTo: next, limit }))
  return { entries: await leaveOutSent(session, endpointId, entries), next, ended: found.length < limit }
}

/**
 * Reads the entries of events. A parcel that is joined to another between two reads would look erased, and its events would be lost. So this
 * locks the parcels found, and then calls `again` to check that the events still belong to them.
 */
async function readHeld(
  source: BatchSource,
  found: readonly Pick<HeldRow, 'holder'>[],
  again: () => Promise<readonly HeldRow[]>,
): Promise<readonly FeedEntry[]> {
  const { session } = source
  const ids = [...new Set(found.flatMap(({ holder }) => holder ?? []))]
  if (ids.length === 0) return []
  const [living, rows, parcels] = await Promise.all([session.all(lockParcels, { ids }), again(), readParcels(source, ids)])
  if (rows.some(({ holder }) => holder !== null && !ids.includes(holder))) throw metAnother('parcels of the feed were joined meanwhile')
  const alive = new Set(living.map(({ id }) => id))
  const parcelOf = (holder: number | null) => (holder !== null && alive.has(holder) ? (parcels.get(holder) ?? null) : null)
  return feedEntriesOf(rows.map((row) => ({ row, parcel: parcelOf(row.holder), hasBody: row.has_body })))
}

/** Reads parcels, by id. The queries are sent together. Another query follows only for parcels with entries at the same instant. */
async function readParcels(source: BatchSource, ids: readonly number[]): Promise<ReadonlyMap<number, FeedParcel>> {
  const { session } = source
  const [sightings, answers, identifiers, contexts] = await Promise.all([
    readWhole(source, ids),
    loadAnswersOf(session, ids),
    loadIdentifiersOf(session, ids),
    loadContexts(session, ids),
  ])
  const named = Map.groupBy(identifiers, (row) => row.parcel_id)
  const entries = new Map(ids.map((id) => [id, deriveEntries(sightings.get(id) ?? [])]))
  const tied = ids.filter((id) => answers.has(id) && instantsTie(entries.get(id) ?? []))
  const orders = await loadOrders(session, tied)
  return new Map(
    ids.map((parcelId) => {
      const names = named.get(parcelId) ?? []
      const trackingIds = names.filter((row) => row.is_tracking_id === 1).map((row) => row.value)
      const ordered = orderHistory(entries.get(parcelId) ?? [], orders.get(parcelId) ?? [])
      const presented = presentParcel(ordered, answers.get(parcelId) ?? [], trackingIds)
      return [parcelId, { parcelId, ...presented, identifiers: names.map((row) => row.value), order: contexts.get(parcelId) ?? NO_CONTEXT }]
    }),
  )
}
