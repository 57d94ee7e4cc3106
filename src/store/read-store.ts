import { sql } from 'kysely'
import { existingTargets, listActions } from './admin/action-lists.ts'
import { endedAmong } from './admin/ended-sessions.ts'
import { findJob, listDamagedJobs, listJobs } from './admin/jobs.ts'
import { findFormerOrder } from './admin/operator-actions.ts'
import { listOperatorEvents } from './admin/operator-events.ts'
import { countParcels } from './admin/parcel-counts.ts'
import { inspectParcel, listParcels } from './admin/parcel-lists.ts'
import { createAgedReads } from './admin/retention/aged-rows.ts'
import { loadRetention } from './admin/retention/retention-state.ts'
import { listTallies } from './admin/tallies.ts'
import { findQueued } from './delivery/delivery-copies.ts'
import { findDelivery, listDeliveries } from './delivery/delivery-lists.ts'
import { countReplayable } from './delivery/ended-deliveries.ts'
import { countBacklogs, listOldestWaiting } from './delivery/endpoint-backlogs.ts'
import { listDamagedEndpoints, listEndpoints } from './delivery/endpoints.ts'
import { lastFailures, listFailures } from './delivery/failures.ts'
import { hasProbe } from './delivery/next-deliveries.ts'
import { readFeed } from './delivery/read-feed.ts'
import { listEventValues } from './history/event-values.ts'
import { findParcel } from './history/find-parcel.ts'
import { listStatuses } from './history/parcel-statuses.ts'
import { nameParcels } from './history/parcels.ts'
import { countHeld } from './ingest/held-pushes.ts'
import { countQuarantined } from './ingest/inbox.ts'
import { inspectPush, listInbox } from './ingest/inbox-lists.ts'
import { listRefusals } from './ingest/refusals.ts'
import { listRefused } from './ingest/refused-pushes.ts'
import { listLeftStores } from './moving/left-stores.ts'
import { findAnsweredParcels } from './polling/answered-parcels.ts'
import type { ReadEngine } from './read-engine.ts'
import type { ReadSide } from './read-side.ts'
import { listRestores } from './restores.ts'
import { statement } from './statement.ts'

const parcels = statement()((db) => db.selectFrom('parcel').select((row) => row.fn.countAll<number>().as('count')))
const anyParcel = statement()((db) => db.selectFrom('parcel').select('id').limit(sql.lit(1)))
const watched = statement()((db) =>
  db
    .selectFrom('parcel')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('next_poll_at_ms', 'is not', null),
)
const overdue = statement<{ nowMs: number }>()((db, p) =>
  db
    .selectFrom('parcel')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('next_poll_at_ms', '<=', p.nowMs),
)

const unknown = statement<{ reason: string }>()((db, p) =>
  db
    .selectFrom('parcel')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('next_poll_at_ms', 'is', null)
    .where('stopped', '=', p.reason),
)

/** Reads committed data on a connection that the writer does not use. */
export function createReadStore(engine: ReadEngine): ReadSide {
  const { session } = engine
  return {
    readFeed: (request) =>
      engine.snapshot(async (of) => ({ ...(await readFeed(of, engine.contents(of), request)), last: await engine.lastSequence(of) })),
    findParcel: (identifier) => engine.snapshot((of) => findParcel(of, engine.contents(of), identifier)),
    async counts(nowMs) {
      const [all] = await session.all(parcels, {})
      const [polled] = await session.all(watched, {})
      const [late] = await session.all(overdue, { nowMs })
      const [stopped] = await session.all(unknown, { reason: 'unknown' })
      return {
        parcels: all?.count ?? 0,
        watched: polled?.count ?? 0,
        overdue: late?.count ?? 0,
        unknown: stopped?.count ?? 0,
        quarantined: await countQuarantined(session),
      }
    },
    countQuarantined: () => countQuarantined(session),
    answeredParcels: (look) => findAnsweredParcels(session, look),
    listParcels: (query) => engine.snapshot((of) => listParcels(of, query)),
    countParcels: (filter, max) => countParcels(session, filter, max),
    nameParcels: (parcelIds) => nameParcels(session, parcelIds),
    listStatuses: () => listStatuses(session),
    listEventValues: () => listEventValues(session),
    inspectParcel: (identifier) => engine.snapshot((of) => inspectParcel(of, engine.contents(of), identifier)),
    listEndpoints: () => listEndpoints(session),
    listFailures: (request) => listFailures(session, request),
    lastFailures: (endpointIds) => lastFailures(session, endpointIds),
    countBacklogs: (endpointIds) => countBacklogs(session, endpointIds.map(Number)),
    listOldestWaiting: () => listOldestWaiting(session),
    hasProbe: (request) => hasProbe(session, request),
    listDeliveries: (query) => engine.snapshot((of) => listDeliveries(of, query)),
    listInbox: (query) => engine.snapshot((of) => listInbox(of, query)),
    inspectPush: (inboxId) => engine.snapshot((of) => inspectPush(of, inboxId)),
    listRefusals: (query) => listRefusals(session, query),
    listRefused: () => listRefused(session),
    countHeld: (state) => engine.snapshot((of) => countHeld(of, state)),
    findDelivery: (id) => engine.snapshot((of) => findDelivery(of, id)),
    countReplayable: ({ selection, limit, untilMs }) => engine.snapshot((of) => countReplayable(of, selection, limit, untilMs)),
    findQueued: (request) => findQueued(session, request),
    listRestores: () => listRestores(session),
    listLeftStores: () => listLeftStores(session),
    listDamaged: async () => [
      ...(await listDamagedEndpoints(session)).map(({ name }) => `endpoint "${name}"`),
      ...(await listDamagedJobs(session)),
    ],
    listDamagedEndpoints: () => listDamagedEndpoints(session),
    listJobs: (query) => listJobs(session, query),
    findJob: (id) => findJob(session, id),
    listOperatorEvents: (query) => listOperatorEvents(session, query),
    retentionState: () => loadRetention(session),
    ...createAgedReads(session),
    listTallies: (query) => listTallies(session, query),
    existingTargets: (targets) => existingTargets(session, targets),
    listActions: (query) => engine.snapshot((of) => listActions(of, query)),
    endedAmong: (sessions) => endedAmong(session, sessions),
    findFormerOrder: (form) => findFormerOrder(session, form),
    async ping() {
      await session.all(anyParcel, {})
    },
    close: () => engine.close(),
  }
}
