import type { ReplayRequest } from '../domain/delivery/delivery-list.ts'
import type { ComposedDelivery, NextRequest, QueuedFeed } from '../domain/delivery/dispatch-round.ts'
import type { EndpointHealth } from '../domain/delivery/endpoint-health.ts'
import type { CatchingUp, ConfiguredNames, EndpointState } from '../domain/delivery/endpoint-state.ts'
import type { FeedEntries, FeedEntriesRequest, WatchdogNews } from '../domain/delivery/feed-entry.ts'
import type { ChangeSet } from '../domain/history/change-set.ts'
import type { KeptTombstones, MarkedTombstone, StorageState } from '../domain/history/erased.ts'
import type { ContextChange } from '../domain/history/order-context.ts'
import type { IdentifierState, ParcelState } from '../domain/history/parcel-state.ts'
import type { BatchStart, Loaded, Needs } from '../domain/history/snapshot.ts'
import { listUnendedJobs } from './admin/jobs.ts'
import { removeEndpoint, saveEndpoint, saveHealth } from './delivery/endpoints.ts'
import { prunedTo } from './delivery/feed.ts'
import { findNextDeliveries } from './delivery/next-deliveries.ts'
import { replayDeliveries } from './delivery/replays.ts'
import { findSkipped, saveSettlements } from './delivery/settlements.ts'
import { type ErasedWords, forSession, type Session } from './engine.ts'
import type { Contents, UnusedText } from './history/contents.ts'
import { loadSightingsOf } from './history/sighting-rows.ts'
import { loadTombstoneKey, saveTombstone } from './history/tombstones.ts'
import { type DuePage, findAskable, findDuePolls, type Leases } from './polling/due-polls.ts'
import { type ScheduleShift, shiftSchedule } from './polling/schedule-shift.ts'
import { loadSetting, markLanguageAsked, saveSetting, TOMBSTONE_KEY } from './settings.ts'

/**
 * The verbs that each engine implements itself, because PostgreSQL reads and writes in sets, assigns sequences in its own way, and has
 * several writers.
 */
interface EngineVerbs {
  /** Begins a batch of `size` observations that name these identifiers. */
  beginBatch(names: readonly string[], size: number): Promise<BatchStart>
  /** Loads parts of a snapshot, on PostgreSQL in one round trip. Locks the parcels whose states it loads until the transaction ends. */
  loadNeeds(needs: Needs): Promise<Loaded>
  /** Writes everything that a batch changes. On PostgreSQL, replaces provisional ids, which begin at `Snapshot.next`, by real ids. */
  applyChanges(changes: ChangeSet): Promise<void>
  /** Saves what apps say of the orders of parcels that the transaction holds, and adds an `update` event for each to the feed. */
  saveContexts(contexts: readonly ContextChange[]): void
  /** Adds events of rules to the feed, about parcels that the transaction holds, and queues the bodies for endpoints behind the events of the parcels. */
  tellWatchdogs(news: readonly WatchdogNews[]): Promise<void>
  /** Reads events of the feed, with the payloads that endpoints get. */
  readFeedEntries(request: FeedEntriesRequest): Promise<FeedEntries>
  /** Queues an event that the relay has composed. It gets the next sequence and is due at once. */
  queueComposed(event: ComposedDelivery): Promise<void>
  /**
   * Queues events from `readFeedEntries` for an endpoint that catches up. The events come after all other deliveries of their
   * parcels at that endpoint.
   */
  queueFeed(events: QueuedFeed): Promise<void>
  /** Saves how far the feed is queued for an endpoint. Returns true if the endpoint has caught up; false: it has not, or this is not known yet. */
  saveQueuedTo(state: CatchingUp, to: { readonly next: number; readonly ended: boolean }): Promise<boolean>
  /** Cancels deliveries that have not ended. The next deliveries of their parcels may then be sent. */
  cancelDeliveries(deliveryIds: readonly number[], nowMs: number): void
  /**
   * Adds a `retired` event to the feed for each of these parcels, which `drop` deletes. The parcels must be locked by `holdParcels` and have no
   * deliveries. If `drop` returns null, it has not deleted all of them yet, so `isDone` is false.
   */
  retireParcels(parcelIds: readonly number[], drop: () => Promise<DroppedParcels | null>): Promise<{ readonly isDone: boolean }>
  /** Deletes the texts in `unused`, and the marks of the texts in `used`. */
  removeTexts(texts: { readonly unused: readonly UnusedText[]; readonly used: readonly UnusedText[] }): void
  /**
   * Adds an `erased` event to the feed for each of these parcels, which the transaction holds and `drop` deletes. `identifiers`: what was asked for,
   * also identifiers without a parcel, so that questions to the carrier about them are forgotten too.
   */
  eraseParcels<Dropped extends DroppedParcels>(
    parcelIds: readonly number[],
    identifiers: readonly string[],
    drop: () => Promise<Dropped>,
  ): Promise<Dropped>
}

/** The identifiers of deleted parcels, and the ids of the contents that they used. The engine removes the contents that no other parcel uses. */
export interface DroppedParcels {
  readonly identifiers: readonly string[]
  readonly contents: readonly number[]
  /** The words of what apps said of their orders, which an erasure removes from the files. */
  readonly words?: Iterable<string>
}

/**
 * The store inside one transaction: the session, with which the functions of the store run their statements, and the verbs that differ by
 * engine. Each verb sees the effects of the verbs before it. A verb that returns nothing need not be awaited. If it fails, it throws at once,
 * or makes the transaction fail later.
 */
export interface WriteTx extends EngineVerbs, ReturnType<typeof createWriteVerbs> {}

/** Options of a transaction in a store that replicas share. A store that is not shared ignores them. */
export interface TransactionKind<T = unknown> {
  /**
   * The role for which the transaction acts. The transaction fails if this replica does not hold the role, or was declared dead after the
   * transaction was requested. `any`: the transaction fails only if this replica was declared dead; the caller has checked the role before.
   */
  readonly ofRole?: 'poller' | 'janitor' | 'any'
  /**
   * Whether to announce to other replicas that the deliveries of endpoints have changed. A function decides this by the transaction's result.
   * Do not announce work that has changed nothing, because replicas do some work after each announcement and would never come to rest.
   */
  readonly announced?: boolean | ((result: T) => boolean)
}

/** Runs transactions. */
export interface Transactions {
  /** Commits durably when `work` resolves, and rolls back when it rejects. Transactions run one at a time. */
  transaction<T>(work: (tx: WriteTx) => Promise<T>, kind?: TransactionKind<T>): Promise<T>
}

/** The store, for writing. */
export interface WriteStore extends Transactions {
  /** Whether an error is a failure of the store (full, unreadable, locked), rather than one that the data has caused. */
  isStorageFailure(error: unknown): boolean
  /** Removes erased data from the files of the store, as far as the engine can. Returns whether the files are clean. */
  cleanStorage(): Promise<StorageState>
  /** Returns the tombstones of erasures that were made after the backup from which the store was restored. */
  missedTombstones(): Promise<KeptTombstones>
}

/** Parcels and identifiers within a transaction. Until the transaction ends, nobody else changes what it has read. */
export interface Parcels {
  findIdentifiers(values: readonly string[]): Promise<readonly IdentifierState[]>
  saveIdentifiers(identifiers: readonly IdentifierState[]): void
  create(count: number, nowMs: number): Promise<readonly ParcelState[]>
  /** Finds parcels, and leaves out ids that do not exist. SQLite returns them in the order given, PostgreSQL in any order. */
  findMany(parcelIds: readonly number[]): Promise<readonly ParcelState[]>
  saveMany(states: readonly ParcelState[]): void
  /** Finds a parcel; null: it no longer exists, for example because it was joined to another. */
  find(parcelId: number): Promise<ParcelState | null>
  save(state: ParcelState): void
  /** Keeps other transactions from changing these parcels and their identifiers until this one ends. Returns the parcels that exist. */
  hold(parcelIds: readonly number[]): Promise<readonly ParcelState[]>
  /** Like `hold`, for the parcels of identifiers. Returns the identifiers that exist. */
  holdOf(identifiers: readonly string[]): Promise<readonly IdentifierState[]>
  /** Removes deleted parcels and their identifiers from the cache. */
  forgetGone(parcelIds: readonly number[], identifiers: readonly string[]): void
  /** Clears the cache. Call it after a statement has changed parcels without `save`. */
  forget(): void
}

/** The endpoints that have not been removed. */
export interface Endpoints {
  list(): Promise<readonly EndpointState[]>
  /** Call it before an endpoint is added, changed or removed. */
  change(): void
  /** Call it when only an endpoint's health has changed. */
  note(endpointId: string, health: EndpointState['health']): void
}

/** The counter of sequences, which number all changes. */
interface Sequence {
  last(): Promise<number>
  /** See `sequenceToCome` of a transaction. */
  toCome(): number
  /** See `nothingSince` of a transaction. */
  nothingSince(sequence: number): void
}

/** The parts that each engine implements in its own way. */
export interface WriteParts {
  readonly session: Session
  readonly contents: Contents
  readonly parcels: Parcels
  readonly endpoints: Endpoints
  readonly sequence: Sequence
  readonly leases: Leases
}

/** Makes the verbs that only some engines implement in another way: they lock first, or remember something. */
export function createWriteVerbs(parts: WriteParts) {
  const { session, sequence } = parts
  const run = forSession(session)
  return {
    ...session,
    ...historyVerbs(parts),
    ...pollingVerbs(parts),
    ...endpointVerbs(parts),
    /**
     * `last`: the last sequence in use. Other transactions may use later sequences before this transaction ends. `prunedTo`: the last deleted
     * sequence; 0: none was deleted.
     */
    feedSpan: async () => ({ last: await sequence.last(), prunedTo: await prunedTo(session) }),
    /** Makes the transaction start over if another transaction uses a higher sequence before this one ends. */
    nothingSince: sequence.nothingSince,
    /** The first sequence after this transaction. It may be a placeholder, so use it only in an endpoint that the transaction saves. */
    sequenceToCome: async () => sequence.toCome(),
    /** The next deliveries of an endpoint, the most overdue first, at most one for each parcel. */
    findNextDeliveries: (request: NextRequest) => findNextDeliveries(session, request),
    /**
     * The waiting deliveries that are marked as skipped, of these endpoints and of endpoints to which no replica delivers. Null: of all endpoints.
     * The caller ends them by `saveSettlements`, except those that are being sent.
     */
    findSkipped: run(findSkipped),
    replayDeliveries: (request: ReplayRequest) => replayDeliveries(session, request),
    /**
     * Saves attempts and the new states of their deliveries. Ends the deliveries in `skipped` that are still marked as skipped. When a
     * delivery ends, the next one of its parcel may be sent. A marked delivery in both lists ends as skipped, unless it was accepted.
     */
    saveSettlements: run(saveSettlements),
    /** The jobs that have not ended, the oldest first. */
    listUnendedJobs: run(listUnendedJobs),
    loadSetting: run(loadSetting),
  }
}

function historyVerbs({ session, contents, parcels }: WriteParts) {
  const run = forSession(session)
  return {
    /** Returns the identifiers among `values` that belong to parcels. */
    findIdentifiers: parcels.findIdentifiers,
    saveIdentifiers: parcels.saveIdentifiers,
    /** Adds parcels about which nothing is known yet. */
    createParcels: parcels.create,
    /** Returns the states of the parcels that were neither joined to others nor deleted. */
    findParcels: parcels.findMany,
    saveParcels: parcels.saveMany,
    /** Returns a parcel's state; null: the parcel was joined to another, or deleted. */
    findParcel: parcels.find,
    /** Throws if the parcel does not exist. */
    async loadParcel(parcelId: number): Promise<ParcelState> {
      const state = await parcels.find(parcelId)
      if (state === null) throw new Error(`an identifier in the store names parcel ${parcelId}, which does not exist`)
      return state
    },
    saveParcel: parcels.save,
    /** Locks parcels until the transaction ends, and returns the ones that still exist. */
    holdParcels: parcels.hold,
    /** Finds identifiers. Until the transaction ends, nobody else changes their parcels and what identifiers these have. */
    holdParcelsOf: parcels.holdOf,
    /** All sightings of parcels, by parcel. A parcel without sightings may be absent. */
    loadSightings: (parcelIds: readonly number[]) => loadSightingsOf(session, contents, parcelIds),
    /** Call it when rows of these contents were changed, so that their ids are read again. */
    forgetContents(jsons: Iterable<string>): void {
      for (const json of jsons) contents.forgetId(json)
    },
    /** Saves tombstones. A tombstone replaces an earlier one with the same mark. */
    addTombstones(tombstones: readonly MarkedTombstone[]): void {
      for (const tombstone of tombstones) saveTombstone(session, tombstone)
    },
    /** Notes the words that the transaction erases. An engine that can search its files looks for them in `cleanStorage`. */
    noteErased: (_words: ErasedWords): void => undefined,
    /** Returns the encrypted key of the tombstones; null: no key exists. */
    loadTombstoneKey: run(loadTombstoneKey),
    saveTombstoneKey: (sealed: string) => saveSetting(session, TOMBSTONE_KEY, Buffer.from(sealed)),
  }
}

function pollingVerbs({ session, parcels, leases }: WriteParts) {
  return {
    /** Parcels whose poll is due and not leased, the most overdue first. `after`: the last parcel of the page before. */
    duePolls: (request: DuePage) => findDuePolls(session, leases, request),
    /** Returns which of these parcels are due and not leased, in the given order, with everything that a poll needs. */
    pollCandidates: (request: { readonly parcelIds: readonly number[]; readonly nowMs: number }) => findAskable(session, leases, request),
    /** Leases polls: nobody else may claim them until `untilMs`. All leases end when the relay stops. */
    leasePolls: leases.take,
    /** Ends the lease of a parcel, because its poll is over. */
    releasePoll: leases.release,
    async shiftSchedule(request: ScheduleShift): Promise<number | null> {
      if (request.afterParcelId === 0) leases.putBack(request.byMs)
      parcels.forget()
      return await shiftSchedule(session, request)
    },
    /** Saves the sequence up to which a language was fetched, unless a higher sequence is already saved. */
    markLanguageAsked: forSession(session)(markLanguageAsked),
  }
}

function endpointVerbs({ session, endpoints }: WriteParts) {
  return {
    /** All endpoints that are not removed. */
    listEndpoints: endpoints.list,
    /** The endpoints that the configs of all replicas name. They cannot change until the transaction ends. */
    // This is for a store that only one process uses. PostgreSQL overrides it.
    endpointsConfigured: async (): Promise<ConfiguredNames> => ({ names: [], latestAtMs: null }),
    /** Saves an endpoint, or adds it if its id is '' or reserved. Returns the id. */
    async saveEndpoint(state: EndpointState): Promise<string> {
      endpoints.change()
      return await saveEndpoint(session, state)
    },
    /** Saves only the health of an endpoint. Use it if the transaction changes nothing else about the endpoint. */
    saveHealth(endpointId: string, health: EndpointHealth): void {
      endpoints.note(endpointId, health)
      saveHealth(session, endpointId, health)
    },
    /** Removes an endpoint. Its deliveries are no longer claimed, and `cancelRemoved` cancels them later. */
    async removeEndpoint(endpointId: string, nowMs: number): Promise<void> {
      endpoints.change()
      removeEndpoint(session, endpointId, nowMs)
    },
  }
}

/**
 * Wraps the store for transactions that change parcels without an observation, for example when an operator unwatches a parcel. After each
 * commit, passes the ids of the changed parcels to `changed`, because cached answers about them may be stale.
 */
export function tellSaved(store: Transactions, changed: (parcelIds: readonly number[]) => void): Transactions {
  return {
    async transaction(work, kind) {
      let saved = new Set<number>()
      const result = await store.transaction((tx) => {
        // An engine may run the work again from its beginning.
        saved = new Set()
        return work(noting(tx, saved))
      }, kind)
      if (saved.size > 0) changed([...saved])
      return result
    },
  }
}

function noting(tx: WriteTx, saved: Set<number>): WriteTx {
  return {
    ...tx,
    saveParcel(state) {
      saved.add(state.parcelId)
      tx.saveParcel(state)
    },
    saveParcels(states) {
      for (const { parcelId } of states) saved.add(parcelId)
      tx.saveParcels(states)
    },
    async markLanguageAsked(parcelId, language, sequence) {
      saved.add(parcelId)
      await tx.markLanguageAsked(parcelId, language, sequence)
    },
  }
}
