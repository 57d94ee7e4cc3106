import { sql } from 'kysely'
import type { FeedSlice } from '../domain/delivery/feed-entry.ts'
import { findJob, listDamagedJobs, listJobs } from './admin/jobs.ts'
import { existingTargets, findFormerOrder, listActions, listOperatorEvents, troubleSinceMs } from './admin/operations.ts'
import { countParcels, countStore, inspectParcel, listParcels } from './admin/parcel-lists.ts'
import { listTallies } from './admin/tally-rows.ts'
import { findDelivery, listDeliveries } from './delivery/delivery-lists.ts'
import { countBacklogs, listOldestWaiting } from './delivery/endpoint-backlogs.ts'
import { lastFailures, listDamagedEndpoints, listEndpoints, listFailures } from './delivery/endpoints.ts'
import { type FeedRequest, readFeed } from './delivery/feed.ts'
import { hasProbe } from './delivery/next-deliveries.ts'
import { countReplayable, findQueued } from './delivery/replays.ts'
import { forSession, type Session } from './engine.ts'
import type { Contents } from './history/contents.ts'
import { listEventValues, listStatuses } from './history/event-values.ts'
import { findParcel } from './history/parcel-view.ts'
import { loadNames } from './history/parcels.ts'
import { loadSightingsOf } from './history/sighting-rows.ts'
import { countHeld } from './ingest/held-pushes.ts'
import { inspectPush, listInbox } from './ingest/inbox-lists.ts'
import { countQuarantined } from './ingest/inbox-rows.ts'
import { findAnsweredParcels } from './polling/due-polls.ts'
import { endedAmong } from './settings.ts'
import { statement } from './statement.ts'

const anyParcel = statement()((db) => db.selectFrom('parcel').select('id').limit(sql.lit(1)))

export interface ReadEngine {
  readonly session: Session
  /** Runs `work` with a session whose reads all come from one snapshot of the database. */
  snapshot<T>(work: (session: Session) => Promise<T>): Promise<T>
  /** Returns the cache of contents for reads within a snapshot. Call it before anything else is read. */
  contents(snapshot: Session): Contents
  /** The last assigned sequence, as the session sees it. */
  lastSequence(session: Session): Promise<number>
  close(): Promise<void>
}

/** All reads of the store. Reads do not use the connections that write. */
export interface ReadSide extends ReturnType<typeof createReadStore> {
  /**
   * Reads a parcel's present version from the store; null: the parcel no longer exists. Absent if only this process writes to the store,
   * because its cache then knows every change.
   */
  readonly parcelVersion?: (parcelId: number) => Promise<number | null>
}

/** Reads committed data on a connection that the writer does not use. Each read is a function of the store; it is described there. */
export function createReadStore(engine: ReadEngine) {
  const { session } = engine
  const now = forSession(session)
  const atOnce =
    <Args extends readonly unknown[], Result>(read: (of: Session, ...args: Args) => Promise<Result>) =>
    (...args: Args) =>
      engine.snapshot((of) => read(of, ...args))
  const withContents =
    <Args extends readonly unknown[], Result>(read: (of: Session, contents: Contents, ...args: Args) => Promise<Result>) =>
    (...args: Args) =>
      engine.snapshot((of) => read(of, engine.contents(of), ...args))
  return {
    /** For functions `(session, …)` of wings. */
    session,
    /** Runs a function of a wing on one snapshot of the store. */
    atOnce: <T>(read: (of: Session, contents: Contents) => Promise<T>): Promise<T> =>
      engine.snapshot((of) => read(of, engine.contents(of))),
    /** Events of the feed after a sequence, with the content that they have now. */
    readFeed: (request: FeedRequest): Promise<FeedSlice> =>
      engine.snapshot(async (of) => ({ ...(await readFeed(of, engine.contents(of), request)), last: await engine.lastSequence(of) })),
    findParcel: withContents(findParcel),
    loadSightings: withContents(loadSightingsOf),
    counts: now(countStore),
    countQuarantined: now(countQuarantined),
    answeredParcels: now(findAnsweredParcels),
    listParcels: atOnce(listParcels),
    countParcels: now(countParcels),
    loadNames: now(loadNames),
    listStatuses: now(listStatuses),
    listEventValues: now(listEventValues),
    inspectParcel: withContents(inspectParcel),
    listEndpoints: now(listEndpoints),
    listFailures: now(listFailures),
    lastFailures: now(lastFailures),
    countBacklogs: now(countBacklogs),
    listOldestWaiting: now(listOldestWaiting),
    hasProbe: now(hasProbe),
    listDeliveries: atOnce(listDeliveries),
    listInbox: atOnce(listInbox),
    inspectPush: atOnce(inspectPush),
    countHeld: atOnce(countHeld),
    findDelivery: atOnce(findDelivery),
    countReplayable: atOnce(countReplayable),
    findQueued: now(findQueued),
    /** Lists the damaged rows that a start skips, in words for the log. */
    listDamaged: async () => [
      ...(await listDamagedEndpoints(session)).map(({ name }) => `endpoint "${name}"`),
      ...(await listDamagedJobs(session)),
    ],
    listDamagedEndpoints: now(listDamagedEndpoints),
    listJobs: now(listJobs),
    findJob: now(findJob),
    listOperatorEvents: now(listOperatorEvents),
    troubleSinceMs: now(troubleSinceMs),
    listTallies: now(listTallies),
    existingTargets: now(existingTargets),
    listActions: atOnce(listActions),
    endedAmong: now(endedAmong),
    findFormerOrder: now(findFormerOrder),
    /** Throws when the store cannot answer. */
    async ping() {
      await session.all(anyParcel, {})
    },
    close: () => engine.close(),
  }
}
