import { sql } from 'kysely'
import { erasedEvent, retiredEvent } from '../../core/domain/delivery/feed-entry.ts'
import { StorageFailure } from '../../core/domain/errors.ts'
import type { KeptTombstones } from '../../core/domain/history/erased.ts'
import { listUnendedJobs } from '../../core/store/admin/jobs.ts'
import { replayDeliveries } from '../../core/store/delivery/replays.ts'
import { markContents, removeContents, settleMarked } from '../../core/store/history/contents.ts'
import { eventValueKey } from '../../core/store/history/event-values.ts'
import { decodeIdentifier } from '../../core/store/history/parcels.ts'
import { loadTombstoneKey } from '../../core/store/history/tombstones.ts'
import {
  createLeases,
  createTransactionLeases,
  findDuePolls,
  type Leases,
  type TransactionLeases,
} from '../../core/store/polling/due-polls.ts'
import { loadSetting } from '../../core/store/settings.ts'
import { createWriteVerbs, type WriteParts, type WriteStore, type WriteTx } from '../../core/store/write-store.ts'
import { createLostCommits, type LostCommits, namesIn, proveHeld, type Timeline, timelineIn } from './admin/lost-commits.ts'
import { missedAfterRestore } from './backups/restored-tombstones.ts'
import { announceOrder, createStandingWatch, createTransactionEnd, readLastSequence, type TransactionEnd } from './counter.ts'
import { createDueFronts, type DueFronts, findSkippedOver } from './delivery/due-fronts.ts'
import { cancelInSets, lockQueues, saveSettlementsInSets } from './delivery/queue-deliveries.ts'
import {
  createTransactionEndpoints,
  endpointVerbs,
  queuingVerbs,
  readSubscribers,
  type Subscribers,
  type TransactionEndpoints,
} from './delivery/queuing-verbs.ts'
import { applyBatch, enqueueFeed, loadNeeds, readWhole } from './history/apply-batch.ts'
import {
  createKnownContents,
  createTransactionContents,
  type KnownContents,
  type TransactionContents,
} from './history/postgres-contents.ts'
import { createPostgresParcels, lockIdentifiers, takeParcelNumbers } from './history/postgres-parcels.ts'
import { createInboxNumbers, type InboxNumbers, PROVISIONAL } from './history/provisional.ts'
import { forgetFlights } from './polling/postgres-shared-carrier.ts'
import { isStorageFailure, type PostgresSession, type PostgresWriter } from './postgres.ts'
import { rawStatement } from './postgres-dialect.ts'
import { metAnother } from './postgres-failure.ts'

/** What a replica remembers between transactions. It stays true when other replicas commit, and is forgotten if the server loses commits. */
interface Memory {
  readonly watch: ReturnType<typeof createStandingWatch>
  kept: Kept
  /** The identifiers that a batch must lock, by those that it names, because a join in its first attempt has changed more than these. */
  readonly toLock: Map<string, readonly string[]>
}

/** How many batches may wait for their second attempt. */
const LOCKED_FIRST_MAX = 100

interface Kept {
  readonly contents: KnownContents
  readonly leases: Leases
  readonly numbers: InboxNumbers
  /** The endpoints and their version. A batch fails as a conflict if the version has changed since. */
  subscribers: Subscribers | null
  /** Statuses that are stored already. */
  readonly statuses: Set<string>
  /** The `eventValueKey` of each value that is stored already. */
  readonly eventValues: Set<string>
  readonly fronts: DueFronts
}

function nothingKept(): Kept {
  return {
    contents: createKnownContents(),
    leases: createLeases(),
    numbers: createInboxNumbers(),
    subscribers: null,
    statuses: new Set(),
    eventValues: new Set(),
    fronts: createDueFronts(),
  }
}

/** A set with more values than this is cleared, because a carrier may invent a status for every parcel. */
const REMEMBERED = 2000

function remember(kept: Set<string>, stored: ReadonlySet<string>): void {
  if (kept.size > REMEMBERED) kept.clear()
  for (const one of stored) kept.add(one)
}

export interface PostgresWriteOptions {
  /** This relay's number among the replicas that share the store; null: it has not joined them. */
  readonly replicaId: () => number | null
  /** Whether the server can name the timeline that it writes. If not, replicas join again after each of its restarts. */
  readonly hasTimeline?: boolean
  /** Notices lost commits. The replica's lease must use the same object. */
  readonly lostCommits?: LostCommits
}

export const ALONE: PostgresWriteOptions = { replicaId: () => null }

/**
 * Makes a store to which several replicas may write. A transaction locks what it reads in a fixed order, which prevents deadlocks:
 * identifiers in the order of their bytes, parcels by id, and at last the counter, which stays locked only for the commit. A parcel's waiting
 * deliveries change only while the parcel is locked.
 */
export function createPostgresWriteStore(
  writer: PostgresWriter,
  { replicaId, hasTimeline = false, lostCommits = createLostCommits() }: PostgresWriteOptions = ALONE,
): WriteStore {
  const memory: Memory = { watch: createStandingWatch(), kept: nothingKept(), toLock: new Map() }
  let missed: KeptTombstones | null = null
  const timelineOf = async (session: PostgresSession): Promise<Timeline> => (hasTimeline ? await timelineIn(session) : null)
  return {
    async transaction(work, { ofRole, announced = false } = {}) {
      // Read the id now. If this replica joins again with another id while the transaction waits for a connection, the transaction must fail.
      const id = ofRole === undefined ? null : replicaId()
      const opened: OpenTransaction[] = []
      try {
        const result = await writer.transaction(async (session) => {
          opened.at(-1)?.rolledBack()
          const transaction = openTransaction(session, memory)
          opened.push(transaction)
          const timeline = () => timelineOf(session)
          const proof =
            id === null || ofRole === undefined ? null : proveHeld(session, { replicaId: id, role: ofRole, lostCommits, timeline })
          proof?.catch((error: unknown) => {
            // What this replica remembers may come from commits that the server has lost.
            if (error instanceof StorageFailure) memory.kept = nothingKept()
          })
          const done = await work(transaction.tx)
          await proof
          transaction.end.send()
          if (typeof announced === 'function' ? announced(done) : announced) announceOrder(session)
          return done
        })
        // Only the last attempt was committed. The earlier attempts were rolled back, because of conflicts with other transactions.
        opened.at(-1)?.committed()
        return result
      } catch (error) {
        opened.at(-1)?.rolledBack()
        throw error
      }
    },
    isStorageFailure,
    // Read them once: missed tombstones do not change while a relay runs, because only a restore adds them.
    async missedTombstones() {
      missed ??= await writer.transaction(missedAfterRestore)
      return missed
    },
    cleanStorage: async () => ({ state: 'pending', because: SERVER_KEEPS }),
  }
}

const SERVER_KEEPS =
  'PostgreSQL keeps old versions of rows in its tables, its WAL, standbys and base backups. docs/operating.md says how to remove them.'

type OpenTransaction = ReturnType<typeof openTransaction>

interface Parts extends WriteParts {
  readonly session: PostgresSession
  readonly end: TransactionEnd
  readonly endpoints: TransactionEndpoints
  readonly contents: TransactionContents
  readonly leases: TransactionLeases
  readonly memory: Memory
  /** What this replica remembered when the transaction was opened. */
  readonly kept: Kept
  /** The endpoints whose due deliveries this transaction has searched. */
  readonly looked: Set<string>
  /** The statuses that this transaction stores. */
  readonly statuses: Set<string>
  /** The `eventValueKey` of each value that this transaction stores. */
  readonly eventValues: Set<string>
  /** The version of the endpoints for which the batch is computed; null: the transaction has begun no batch. */
  endpointsVersion: number | null
}

function openTransaction(session: PostgresSession, memory: Memory) {
  const { kept } = memory
  const contents = createTransactionContents(session, kept.contents)
  const end = createTransactionEnd(session)
  const parts: Parts = {
    session,
    end,
    contents,
    memory,
    kept,
    looked: new Set(),
    statuses: new Set(),
    eventValues: new Set(),
    endpointsVersion: null,
    leases: createTransactionLeases(kept.leases),
    parcels: createPostgresParcels(session),
    endpoints: createTransactionEndpoints(session, end),
    sequence: { last: () => readLastSequence(session), toCome: end.toCome, nothingSince: end.nothingSince },
  }
  return {
    tx: {
      ...createWriteVerbs(parts),
      ...endpointVerbs(parts),
      ...deliveryVerbs(parts),
      ...queuingVerbs(parts),
      ...exclusiveVerbs(parts),
      ...recordingVerbs(parts),
      ...retiringVerbs(parts),
      ...erasingVerbs(parts),
    },
    end,
    committed() {
      // Another version: contents may have been erased since the batch read theirs. Without a version nobody would notice.
      if (parts.endpointsVersion !== null && parts.endpointsVersion === kept.subscribers?.version) contents.committed()
      parts.leases.committed()
      remember(kept.statuses, parts.statuses)
      remember(kept.eventValues, parts.eventValues)
    },
    rolledBack() {
      parts.leases.rolledBack()
      for (const endpointId of parts.looked) kept.fronts.forget(endpointId)
    },
  }
}

/** Makes the methods that change or search waiting deliveries. A change locks the parcels of the deliveries. */
function deliveryVerbs({ session, looked, kept: { fronts } }: Parts) {
  return {
    replayDeliveries: (request) => replayDeliveries(session, request, (parcelIds) => lockQueues(session, request.to, parcelIds)),
    saveSettlements(settled, skipped, nowMs) {
      saveSettlementsInSets(session, settled, skipped, nowMs)
      // When a retried delivery ends, the next delivery of its parcel becomes due. The next one may lie before the front (see `due-fronts`).
      for (const { endpointId, attempts } of settled) if (attempts > 1) fronts.forget(endpointId)
      for (const { endpointId } of skipped) fronts.forget(endpointId)
    },
    findSkipped: (endpointIds) => findSkippedOver(session, endpointIds),
    findNextDeliveries(request) {
      looked.add(request.endpointId)
      return fronts.find(session, request)
    },
  } satisfies Partial<WriteTx>
}

/** Makes those methods of a retention pass that lock parcels or need sequences. */
function retiringVerbs({ session, end }: Parts) {
  return {
    cancelDeliveries: (deliveryIds, nowMs) => cancelInSets(session, deliveryIds, nowMs),
    async retireParcels(parcelIds, drop) {
      const retired = await drop()
      if (retired === null) return { isDone: false }
      const events = parcelIds.map((parcelId) => retiredEvent(end.give(), parcelId))
      end.whenNumbered(() => {
        enqueueFeed(session, events)
        // Mark unused contents only under the lock of the counter. Otherwise two transactions could remove the last sightings of a content,
        // each see the other's sighting, and both leave the content unmarked.
        markContents(session, retired.contents)
      })
      return { isDone: true }
    },
    removeTexts({ unused, used }) {
      // Raise the version of the endpoints. Then other open batches begin again, and none of them uses a removed content.
      if (unused.length > 0) end.changeEndpoints(null)
      end.whenNumbered(() => settleMarked(session, { unused, used }))
    },
  } satisfies Partial<WriteTx>
}

function erasingVerbs({ session, end }: Parts) {
  return {
    async eraseParcels(parcelIds, identifiers, drop) {
      forgetFlights(session, identifiers)
      const erased = await drop()
      if (parcelIds.length === 0) return erased
      forgetFlights(session, erased.identifiers)
      const events = parcelIds.map((parcelId) => erasedEvent(end.give(), parcelId))
      // Raise the version of the endpoints. Then other open batches begin again, and none of them uses a removed content.
      end.changeEndpoints(null)
      end.whenNumbered(() => {
        enqueueFeed(session, events)
        removeContents(session, erased.contents)
      })
      return erased
    },
  } satisfies Partial<WriteTx>
}

const lockSettings = rawStatement()(() => sql`select name from counter where name = 'settings' for update`)
const lockJobs = rawStatement<{ limit: number }>()(
  (p) => sql`select id from job where ended_at_ms is null order by id limit ${p.limit} for update`,
)
const lockRoles = rawStatement()(() => sql`select name from counter where name = 'roles' for update`)
const readConfigured = rawStatement()(
  () => sql<{ endpoints: string; at_ms: number }>`select endpoints, coalesce(configured_at_ms, started_at_ms) as at_ms from replica`,
)
const lockPolls = rawStatement()(() => sql`select name from counter where name = 'polls' for update`)

/**
 * Makes the methods that read what the transaction then changes or relies on: settings, jobs, due polls and the configs of replicas. Each
 * takes a lock first, so that no transaction overwrites what another has just changed.
 */
function exclusiveVerbs({ session, leases }: Parts) {
  const lockedSettings = () => {
    session.enqueueWrite(lockSettings, {})
    return session
  }
  return {
    async duePolls(request) {
      await session.run(lockPolls, {})
      return await findDuePolls(session, leases, request)
    },
    async endpointsConfigured() {
      session.enqueueWrite(lockRoles, {})
      const configs = await session.all(readConfigured, {})
      return {
        names: configs.flatMap(({ endpoints }) => namesIn(endpoints)),
        // The caller is a replica itself, so there is at least one row.
        latestAtMs: Math.max(0, ...configs.map(({ at_ms }) => at_ms)),
      }
    },
    listUnendedJobs(limit) {
      session.enqueueWrite(lockJobs, { limit })
      return listUnendedJobs(session, limit)
    },
    loadTombstoneKey: () => loadTombstoneKey(lockedSettings()),
    loadSetting: (name) => loadSetting(lockedSettings(), name),
  } satisfies Partial<WriteTx>
}

function recordingVerbs(parts: Parts) {
  const { session, contents, memory, kept } = parts
  const source = { session, contents }
  let [batch, locked]: [string, ReadonlySet<string>] = ['', new Set()]
  const lockFirst = (identifiers: readonly string[]) => {
    const lacking = identifiers.filter((value) => !locked.has(value))
    memory.toLock.delete(batch)
    if (lacking.length === 0) return
    if (memory.toLock.size >= LOCKED_FIRST_MAX) memory.toLock.clear()
    memory.toLock.set(batch, [...locked, ...lacking])
    throw metAnother('a join must lock identifiers before it locks parcels')
  }
  return {
    async beginBatch(names, size) {
      batch = names.join()
      const values = memory.toLock.get(batch) ?? names
      locked = new Set(values)
      const isBack = memory.watch.asking()
      const [found, [parcelNumbers], subscribers, inboxId] = await Promise.all([
        values.length === 0 ? [] : session.all(lockIdentifiers, { values }),
        session.all(takeParcelNumbers, {}),
        readSubscribers(session, kept.subscribers),
        kept.numbers.take(session, size),
      ])
      if (isBack(subscribers.standing)) memory.kept = nothingKept()
      // What this replica remembered comes from another server, or from commits that the server has lost.
      if (memory.kept !== kept) throw metAnother('the server has lost what this replica remembers')
      // An erasure also raises the version, and it removes contents that may be cached.
      if (kept.subscribers !== null && kept.subscribers.version !== subscribers.version) kept.contents.forget()
      kept.subscribers = subscribers
      parts.endpointsVersion = subscribers.version
      const named = new Set(names)
      const identifiers = new Map(found.flatMap((row) => (named.has(row.value) ? [[row.value, decodeIdentifier(row)]] : [])))
      const next = { parcelId: parcelNumbers?.first ?? 0, sequence: PROVISIONAL + 1, inboxId }
      return { next, identifiers, endpoints: subscribers.endpoints }
    },
    loadSightings: (parcelIds) => readWhole(source, parcelIds),
    loadNeeds: (needs) => loadNeeds(source, needs),
    async applyChanges(changes) {
      await applyBatch(
        {
          session,
          contents,
          leases: parts.leases,
          endpointsVersion: parts.endpointsVersion ?? 0,
          statuses: kept.statuses,
          eventValues: kept.eventValues,
          lockFirst,
        },
        changes,
      )
      for (const { statuses, eventValues, parcels } of changes.writes) {
        for (const value of eventValues) parts.eventValues.add(eventValueKey(value))
        for (const status of statuses) parts.statuses.add(status)
        for (const { latest } of parcels.values()) if (latest !== null) parts.statuses.add(latest.status)
      }
    },
  } satisfies Partial<WriteTx>
}
