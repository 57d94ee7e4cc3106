import type { EndpointState } from '../domain/delivery/endpoint-state.ts'
import type { IdentifierState, ParcelState } from '../domain/history/parcel-state.ts'
import { searchMentions } from './admin/erasure/mentions.ts'
import { removeUnfinished } from './admin/erasure/unfinished.ts'
import { listUnendedJobs } from './admin/jobs.ts'
import { createAgedReads } from './admin/retention/aged-rows.ts'
import { agedRemovals } from './admin/retention/remove-aged.ts'
import { loadRetention, saveRetention } from './admin/retention/retention-state.ts'
import { removeEndpoint, saveEndpoint, saveHealth } from './delivery/endpoints.ts'
import { prunedTo } from './delivery/feed.ts'
import { findNextDeliveries } from './delivery/next-deliveries.ts'
import { replayDeliveries } from './delivery/replays.ts'
import { saveSettlements } from './delivery/settlements.ts'
import { findSkipped } from './delivery/skips.ts'
import type { Session } from './engine.ts'
import type { Contents } from './history/contents.ts'
import { rebuildVerbs } from './history/rebuilding.ts'
import { loadSightingsOf } from './history/sightings.ts'
import { loadTombstoneKey, saveTombstone } from './history/tombstones.ts'
import { findAskable, findDuePolls } from './polling/due-polls.ts'
import type { Leases } from './polling/leases.ts'
import { shiftSchedule } from './polling/schedule-shift.ts'
import { loadSetting, markLanguageAsked, saveSetting, TOMBSTONE_KEY } from './settings.ts'
import type { WriteTx } from './write-store.ts'

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
export interface Sequence {
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

/**
 * The methods that each engine implements itself, because PostgreSQL reads and writes in sets, assigns sequences in its own way, and has
 * several writers.
 */
type OfEngine =
  | 'retireParcels'
  | 'removeTexts'
  | 'cancelDeliveries'
  | 'eraseParcels'
  | 'beginBatch'
  | 'loadNeeds'
  | 'applyChanges'
  | 'readFeedEntries'
  | 'queueComposed'
  | 'queueFeed'
  | 'saveQueuedTo'

export function createWriteVerbs(parts: WriteParts): Omit<WriteTx, OfEngine> {
  const { session, sequence } = parts
  return {
    ...session,
    ...historyVerbs(parts),
    ...pollingVerbs(parts),
    ...endpointVerbs(parts),
    ...createAgedReads(session),
    ...agedRemovals(session),
    holdParcels: parts.parcels.hold,
    holdParcelsOf: parts.parcels.holdOf,
    loadRetention: () => loadRetention(session),
    saveRetention: (state) => saveRetention(session, state),
    feedSpan: async () => ({ last: await sequence.last(), prunedTo: await prunedTo(session) }),
    nothingSince: sequence.nothingSince,
    sequenceToCome: async () => sequence.toCome(),
    findNextDeliveries: (request) => findNextDeliveries(session, request),
    findSkipped: (endpointIds) => findSkipped(session, endpointIds),
    replayDeliveries: (request) => replayDeliveries(session, request),
    saveSettlements: (settled, skipped, nowMs) => saveSettlements(session, settled, skipped, nowMs),
    listUnendedJobs: (limit) => listUnendedJobs(session, limit),
    loadSetting: (name) => loadSetting(session, name),
  }
}

function historyVerbs(parts: WriteParts) {
  const { session, contents, parcels } = parts
  return {
    ...rebuildVerbs(parts, (parcelIds) => loadSightingsOf(session, contents, parcelIds)),
    findIdentifiers: parcels.findIdentifiers,
    saveIdentifiers: parcels.saveIdentifiers,
    createParcels: parcels.create,
    findParcels: parcels.findMany,
    saveParcels: parcels.saveMany,
    findParcel: parcels.find,
    async loadParcel(parcelId) {
      const state = await parcels.find(parcelId)
      if (state === null) throw new Error(`an identifier in the store names parcel ${parcelId}, which does not exist`)
      return state
    },
    saveParcel: parcels.save,
    loadSightings: (parcelIds) => loadSightingsOf(session, contents, parcelIds),
    addTombstones(tombstones) {
      for (const tombstone of tombstones) saveTombstone(session, tombstone)
    },
    searchMentions: async (request) => (await searchMentions(session, request)).searched,
    removeUnfinished: (identifiers) => removeUnfinished(session, identifiers),
    loadTombstoneKey: () => loadTombstoneKey(session),
    saveTombstoneKey: (sealed) => saveSetting(session, TOMBSTONE_KEY, Buffer.from(sealed)),
  } satisfies Partial<WriteTx>
}

function pollingVerbs({ session, parcels, leases }: WriteParts) {
  return {
    duePolls: (request) => findDuePolls(session, leases, request),
    pollCandidates: (request) => findAskable(session, leases, request),
    leasePolls: leases.take,
    releasePoll: leases.release,
    async shiftSchedule(request) {
      if (request.afterParcelId === 0) leases.putBack(request.byMs)
      parcels.forget()
      return await shiftSchedule(session, request)
    },
    markLanguageAsked: (parcelId, language, upTo) => markLanguageAsked(session, parcelId, language, upTo),
  } satisfies Partial<WriteTx>
}

function endpointVerbs({ session, endpoints }: WriteParts) {
  return {
    listEndpoints: endpoints.list,
    // This is for a store that only one process uses. PostgreSQL overrides it.
    endpointsConfigured: async () => ({ names: [], latestAtMs: null }),
    async saveEndpoint(state) {
      endpoints.change()
      return await saveEndpoint(session, state)
    },
    saveHealth(endpointId, health) {
      endpoints.note(endpointId, health)
      saveHealth(session, endpointId, health)
    },
    async removeEndpoint(endpointId, nowMs) {
      endpoints.change()
      removeEndpoint(session, endpointId, nowMs)
    },
  } satisfies Partial<WriteTx>
}
