import { type Selectable, sql } from 'kysely'
import type { EndpointHealth } from '../../../core/domain/delivery/endpoint-health.ts'
import type { EndpointState } from '../../../core/domain/delivery/endpoint-state.ts'
import { type FeedEntries, type FeedEntriesRequest, updateEvent, watchdogEvent } from '../../../core/domain/delivery/feed-entry.ts'
import type { Subscriber } from '../../../core/domain/history/snapshot.ts'
import { decodeEndpoint, encodeHealth, isReadableEndpoint } from '../../../core/store/codec.ts'
import { encodeEndpoint, listEndpoints, saveEndpoint, saveHealth } from '../../../core/store/delivery/endpoints.ts'
import { type FeedRow, feedEntriesFor, survivorOf } from '../../../core/store/delivery/feed.ts'
import type { Session } from '../../../core/store/engine.ts'
import { contextRow } from '../../../core/store/history/order-contexts.ts'
import { viewParcels } from '../../../core/store/history/parcel-view.ts'
import type { Tables } from '../../../core/store/tables.ts'
import type { Endpoints, WriteTx } from '../../../core/store/write-store.ts'
import { endpointsStay, readEndpointsVersion, type Standing, standingColumns, type TransactionEnd } from '../counter.ts'
import { type BatchSource, enqueueFeed, readWhole } from '../history/apply-batch.ts'
import type { TransactionContents } from '../history/postgres-contents.ts'
import { PROVISIONAL, real } from '../history/provisional.ts'
import type { PostgresSession } from '../postgres.ts'
import { type Columns, enqueueRows, rawStatement } from '../postgres-dialect.ts'
import { metAnother } from '../postgres-failure.ts'
import { enqueueComposed, enqueueDeliveries, lockQueues } from './queue-deliveries.ts'

export interface TransactionEndpoints extends Endpoints {
  /** Returns the endpoint as this transaction read it. Null: the transaction has not read the endpoint, or has called this for it before. */
  takeBefore(endpointId: string): EndpointState | null
  /** Whether the endpoint is still as it was read, so that it need not be saved. */
  isSame(state: EndpointState): boolean
  /** Makes this transaction begin again if another transaction has changed endpoints since this one read them. */
  stay(): void
}

export function createTransactionEndpoints(session: PostgresSession, end: TransactionEnd): TransactionEndpoints {
  let listed: Promise<readonly EndpointState[]> | null = null
  const read = new Map<string, EndpointState>()
  const written = new Set<string>()
  let known: number | null = null
  let isChanged = false
  const list = async () => {
    const version = known === null ? readEndpointsVersion(session) : known
    const [current, endpoints] = await Promise.all([version, listEndpoints(session)])
    known = current
    for (const state of endpoints) read.set(state.endpoint.id, state)
    return endpoints
  }
  const unwritten = (endpointId: string) => (written.has(endpointId) ? null : (read.get(endpointId) ?? null))
  const stay = () => {
    if (!isChanged && known !== null) endpointsStay(session, known)
  }
  return {
    list() {
      listed ??= list()
      return listed
    },
    change() {
      listed = null
      end.changeEndpoints(known)
      isChanged = true
    },
    takeBefore(endpointId) {
      const before = unwritten(endpointId)
      written.add(endpointId)
      return before
    },
    isSame(state) {
      const before = unwritten(state.endpoint.id)
      return before !== null && JSON.stringify(encodeEndpoint(before)) === JSON.stringify(encodeEndpoint(state))
    },
    stay,
    note() {
      listed = null
      stay()
    },
  }
}

interface EndpointParts {
  readonly session: PostgresSession
  readonly endpoints: TransactionEndpoints
  readonly end: TransactionEnd
}

const number = rawStatement<{ id: number }>()(
  (p) => sql`
    update endpoint set first_sequence = ${real(sql.ref('first_sequence'))}, backfill_from = ${real(sql.ref('backfill_from'))},
      backfill_to = ${real(sql.ref('backfill_to'))}
    where id = ${p.id}::bigint`,
)

/** Two replicas may change the same endpoint at the same time: one after an attempt, the other for an operator. */
export function endpointVerbs({ session, endpoints, end }: EndpointParts) {
  return {
    saveHealth(endpointId, health) {
      const before = endpoints.takeBefore(endpointId)
      endpoints.note(endpointId, health)
      if (before === null) saveHealth(session, endpointId, health)
      else saveHealthAfter(session, endpointId, health, before.health)
    },
    async saveEndpoint(state) {
      // At each start a relay saves the endpoints of its config, mostly unchanged. A needless save would make all open batches begin again.
      if (endpoints.isSame(state)) return state.endpoint.id
      const before = endpoints.takeBefore(state.endpoint.id)
      if (before !== null) endpointStays(session, before)
      endpoints.change()
      const id = await saveEndpoint(session, state)
      if (isProvisional(state)) end.whenNumbered(() => session.enqueueWrite(number, { id: Number(id) }))
      return id
    },
  } satisfies Partial<WriteTx>
}

function isProvisional({ firstSequence, backfilled }: EndpointState): boolean {
  return Math.max(firstSequence, backfilled?.from ?? 0, backfilled?.to ?? 0) > PROVISIONAL
}

type SavedHealth = ReturnType<typeof encodeHealth> & { readonly id: number; readonly before: string }

/** The health columns of a row as one value, in the order of `encodeHealth`, so that one comparison can check all of them. */
const stored = sql`jsonb_build_array(succeeded_at_ms, failing_since_ms, failed_for_ms, failed_parcels, probe_at_ms, probes_failed, refused_from, refused_at_ms, round, woken_at_ms, alarmed_at_ms, pace)`

function textOf(health: EndpointHealth): string {
  return JSON.stringify(Object.values(encodeHealth(health)))
}

const save = rawStatement<SavedHealth>()(
  (p) => sql`
    update endpoint set succeeded_at_ms = ${p.succeeded_at_ms}::bigint, failing_since_ms = ${p.failing_since_ms}::bigint, failed_for_ms = ${p.failed_for_ms}::bigint,
      failed_parcels = ${p.failed_parcels}::text, probe_at_ms = ${p.probe_at_ms}::bigint, probes_failed = ${p.probes_failed}::integer,
      refused_from = ${p.refused_from}::bigint, refused_at_ms = ${p.refused_at_ms}::bigint, woken_at_ms = ${p.woken_at_ms}::bigint, alarmed_at_ms = ${p.alarmed_at_ms}::bigint, pace = ${p.pace}::text,
      round = ${p.round}::bigint / (case when ${stored} = ${p.before}::jsonb then 1 else 0 end)
    where id = ${p.id}::bigint`,
)
const hold = rawStatement<{ id: number; before: string; queuedTo: number | null }>()(
  (p) => sql`
    select 1 / (case when ${stored} = ${p.before}::jsonb and queued_to is not distinct from ${p.queuedTo}::bigint then 1 else 0 end)
    from endpoint where id = ${p.id}::bigint for no key update`,
)

/**
 * Saves a health that was computed from `before`. Fails as a conflict (by a division by zero) if another transaction, such as an operator's
 * retry, has changed the health since.
 */
function saveHealthAfter(session: Session, endpointId: string, health: EndpointHealth, before: EndpointHealth): void {
  session.enqueueWrite(save, { id: Number(endpointId), ...encodeHealth(health), before: textOf(before) })
}

/**
 * Fails as a conflict if an endpoint's health or `queuedTo` has changed. The version of the endpoints does not show such a change. If neither
 * has changed, locks the row, so that both stay the same until the transaction ends.
 */
function endpointStays(session: Session, { endpoint, health, queuedTo }: EndpointState): void {
  session.enqueueWrite(hold, { id: Number(endpoint.id), before: textOf(health), queuedTo })
}

/** The endpoints that decide which deliveries a batch queues, and their version. `standing`: the state of the server at the last check. */
export interface Subscribers {
  readonly standing: Standing
  readonly version: number
  readonly endpoints: readonly Subscriber[]
}

type EndpointRow = { readonly [Column in keyof Parameters<typeof decodeEndpoint>[0]]: Parameters<typeof decodeEndpoint>[0][Column] }

const sinceVersion = rawStatement<{ known: number }>()(
  (p) => sql<EndpointRow & Pick<Tables['counter'], 'version'> & Standing>`
    select counter.version, ${standingColumns}, endpoint.* from counter
    left join endpoint on endpoint.removed_at_ms is null and counter.version <> ${p.known}::bigint
    where counter.name = 'sequence' order by endpoint.id`,
)

/** Reads the version of the endpoints, and the endpoints themselves only if they have changed since `known`. */
export async function readSubscribers(session: Session, known: Subscribers | null): Promise<Subscribers> {
  const rows = await session.all(sinceVersion, { known: known?.version ?? -1 })
  const [first] = rows
  if (first === undefined) throw new Error('the counter of the store is gone')
  const { version, server, sequence } = first
  const standing = { server, sequence }
  if (known !== null && version === known.version) return { ...known, standing }
  return { version, standing, endpoints: rows.flatMap((row) => (row.id === null || !isReadableEndpoint(row) ? [] : [decodeEndpoint(row)])) }
}

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

interface QueuingParts {
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
    async tellWatchdogs(news) {
      const told = news.map((one) => ({ one, event: watchdogEvent(end.give(), one) }))
      end.whenNumbered(() => {
        // An endpoint that was changed, or has caught up, since this transaction read it may be one that gets the body.
        endpoints.stay()
        enqueueFeed(
          session,
          told.map(({ event }) => event),
        )
        enqueueComposed(
          session,
          told.flatMap(({ one: { body }, event: { sequence } }) => (body === null ? [] : { sequence, body })),
        )
        enqueueDeliveries(
          session,
          told.flatMap(({ one: { endpointIds, parcelId, nowMs }, event: { sequence } }) =>
            endpointIds.map((endpointId) => ({ endpointId, parcelId, sequence, inboxId: null, toldIn: null, nowMs })),
          ),
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

type HeldRow = Pick<Selectable<Tables['feed']>, 'sequence' | 'kind' | 'entry' | 'payload_ref' | 'earlier_audience' | 'earlier_tellings'> & {
  /** The parcel that has the event's history after all joins; null: the event is not sent to endpoints. */
  readonly holder: number | null
  readonly has_body: boolean
}

const HELD = sql`
  sequence, kind, entry, payload_ref, earlier_audience, earlier_tellings,
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
  const rows = await readHeld(source, found, () => session.all(eventsBetween, { after, upTo: next, limit }))
  return { ...(await feedEntriesFor(session, endpointId, rows)), next, ended: found.length < limit }
}

/**
 * Reads events with their parcels. A parcel that is joined to another between two reads would look erased, and its events would be lost. So this
 * locks the parcels found, and then calls `again` to check that the events still belong to them.
 */
async function readHeld(
  source: BatchSource,
  found: readonly Pick<HeldRow, 'holder'>[],
  again: () => Promise<readonly HeldRow[]>,
): Promise<readonly FeedRow[]> {
  const { session } = source
  const ids = [...new Set(found.flatMap(({ holder }) => holder ?? []))]
  if (ids.length === 0) return []
  const [living, rows, parcels] = await Promise.all([
    session.all(lockParcels, { ids }),
    again(),
    viewParcels(session, ids, readWhole(source, ids)),
  ])
  if (rows.some(({ holder }) => holder !== null && !ids.includes(holder))) throw metAnother('parcels of the feed were joined meanwhile')
  const alive = new Set(living.map(({ id }) => id))
  const parcelOf = (holder: number | null) => (holder !== null && alive.has(holder) ? (parcels.get(holder) ?? null) : null)
  return rows.map((row) => ({ row, parcel: parcelOf(row.holder), hasBody: row.has_body }))
}
