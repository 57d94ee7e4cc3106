import type { EndpointState } from '../domain/delivery/endpoint-state.ts'
import type { IdentifierState, ParcelState } from '../domain/history/parcel-state.ts'
import { endSession } from './admin/ended-sessions.ts'
import { searchMentions } from './admin/erasure/mentions.ts'
import { addUnfinished, listUnfinished, removeUnfinished } from './admin/erasure/unfinished.ts'
import { cancelJob, insertJob, listUnendedJobs, saveJob, takeEndedJobs } from './admin/jobs.ts'
import { forgetForms, insertAction, pruneActions } from './admin/operator-actions.ts'
import { insertOperatorEvent, pruneOperatorEvents } from './admin/operator-events.ts'
import { createAgedReads } from './admin/retention/aged-rows.ts'
import { agedRemovals } from './admin/retention/remove-aged.ts'
import { loadRetention, saveRetention } from './admin/retention/retention-state.ts'
import { addTallies, findCounted, noteFlush, pruneTallies } from './admin/tallies.ts'
import {
  beginTrouble,
  countQuarantine,
  endTrouble,
  listTroubles,
  pruneTroubles,
  saveTrouble,
  takeQuarantineCounts,
} from './admin/troubles.ts'
import { cancelRemoved, findGone, findOvertaken } from './delivery/deliveries.ts'
import { countWaiting } from './delivery/endpoint-backlogs.ts'
import { listDamagedEndpoints, removeEndpoint, reserveEndpoint, saveEndpoint, saveHealth } from './delivery/endpoints.ts'
import { noteFailures } from './delivery/failures.ts'
import { prunedTo, recordedAt } from './delivery/feed.ts'
import { findNextDeliveries, findProbe, hastenDelivery, waitsForOthers } from './delivery/next-deliveries.ts'
import { replayDeliveries } from './delivery/replays.ts'
import { saveSettlements } from './delivery/settlements.ts'
import { findSkipped, skipDelivery, unskipDelivery } from './delivery/skips.ts'
import type { Session } from './engine.ts'
import type { Contents } from './history/contents.ts'
import { findIdentifiers, markRefused, pollableFrom, pollableIdentifiers } from './history/parcels.ts'
import { rebuildVerbs } from './history/rebuilding.ts'
import { loadSightingsOf } from './history/sightings.ts'
import { dropTombstones, findTombstones, hasTombstones, listIdentifiers, loadTombstoneKey, saveTombstone } from './history/tombstones.ts'
import { findAskable, findDuePolls } from './polling/due-polls.ts'
import { dropExpectedPushes, duePushes } from './polling/expected-pushes.ts'
import type { Leases } from './polling/leases.ts'
import { listEndedByClock, shiftSchedule } from './polling/schedule-shift.ts'
import { loadSetting, makeSetting, markLanguageAsked, saveSetting, TOMBSTONE_KEY } from './settings.ts'
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
  return {
    ...parts.session,
    ...historyVerbs(parts),
    ...feedVerbs(parts),
    ...pollingVerbs(parts),
    ...endpointVerbs(parts),
    ...deliveryVerbs(parts),
    ...adminVerbs(parts),
    ...operationVerbs(parts),
    ...createAgedReads(parts.session),
    ...agedRemovals(parts.session),
    holdParcels: parts.parcels.hold,
    holdParcelsOf: parts.parcels.holdOf,
    loadRetention: () => loadRetention(parts.session),
    saveRetention: (state) => saveRetention(parts.session, state),
  }
}

function historyVerbs(parts: WriteParts) {
  const { session, contents, parcels } = parts
  return {
    ...rebuildVerbs(parts, (parcelIds) => loadSightingsOf(session, contents, parcelIds)),
    findIdentifiers: parcels.findIdentifiers,
    lookUpIdentifiers: (values) => findIdentifiers(session, values),
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
    findTombstones: (marks) => findTombstones(session, marks),
    addTombstones(tombstones) {
      for (const tombstone of tombstones) saveTombstone(session, tombstone)
    },
    searchMentions: async (request) => (await searchMentions(session, request)).searched,
    addUnfinished: (identifiers) => addUnfinished(session, identifiers),
    listUnfinished: () => listUnfinished(session),
    removeUnfinished: (identifiers) => removeUnfinished(session, identifiers),
    loadTombstoneKey: () => loadTombstoneKey(session),
    hasTombstones: () => hasTombstones(session),
    dropTombstones: () => dropTombstones(session),
    listIdentifiers: (page) => listIdentifiers(session, page),
    saveTombstoneKey: (sealed) => saveSetting(session, TOMBSTONE_KEY, Buffer.from(sealed)),
  } satisfies Partial<WriteTx>
}

function feedVerbs({ session, sequence }: WriteParts) {
  return {
    feedSpan: async () => ({ last: await sequence.last(), prunedTo: await prunedTo(session) }),
    nothingSince: sequence.nothingSince,
    sequenceToCome: async () => sequence.toCome(),
    recordedAt: (sequence) => recordedAt(session, sequence),
  } satisfies Partial<WriteTx>
}

function pollingVerbs({ session, parcels, leases }: WriteParts) {
  return {
    duePushes: (nowMs, limit) => duePushes(session, nowMs, limit),
    dropExpectedPushes: (entries) => dropExpectedPushes(session, entries),
    duePolls: (request) => findDuePolls(session, leases, request),
    pollCandidates: (request) => findAskable(session, leases, request),
    pollableIdentifiers: (parcelId, nowMs) => pollableIdentifiers(session, parcelId, nowMs),
    pollableFrom: (parcelIds) => pollableFrom(session, parcelIds),
    leasePolls: leases.take,
    releasePoll: leases.release,
    listEndedByClock: (request) => listEndedByClock(session, request),
    async shiftSchedule(request) {
      if (request.afterParcelId === 0) leases.putBack(request.byMs)
      parcels.forget()
      return await shiftSchedule(session, request)
    },
    markNotPollable: (identifier, nowMs) => markRefused(session, identifier, nowMs),
    markLanguageAsked: (parcelId, language, upTo) => markLanguageAsked(session, parcelId, language, upTo),
  } satisfies Partial<WriteTx>
}

function endpointVerbs({ session, endpoints }: WriteParts) {
  return {
    listEndpoints: endpoints.list,
    listDamagedEndpoints: () => listDamagedEndpoints(session),
    reserveEndpoint: (nowMs) => reserveEndpoint(session, nowMs),
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

function deliveryVerbs({ session }: WriteParts) {
  return {
    findGone: (deliveryIds) => findGone(session, deliveryIds),
    findOvertaken: (deliveryIds) => findOvertaken(session, deliveryIds),
    findNextDeliveries: (request) => findNextDeliveries(session, request),
    findProbe: (request) => findProbe(session, request),
    hastenDelivery: (deliveryId) => hastenDelivery(session, deliveryId),
    skipDelivery: (deliveryId) => skipDelivery(session, deliveryId),
    unskipDelivery: (deliveryId) => unskipDelivery(session, deliveryId),
    findSkipped: (endpointIds) => findSkipped(session, endpointIds),
    waitsForOthers: (endpointId, parcelIds) => waitsForOthers(session, endpointId, parcelIds),
    countWaiting: (endpointId, limit) => countWaiting(session, endpointId, limit),
    cancelRemoved: (limit) => cancelRemoved(session, limit),
    replayDeliveries: (request) => replayDeliveries(session, request),
    saveSettlements: (settled, skipped, nowMs) => saveSettlements(session, settled, skipped, nowMs),
    noteFailures: (failures, nowMs) => noteFailures(session, failures, nowMs),
  } satisfies Partial<WriteTx>
}

function adminVerbs({ session }: WriteParts) {
  return {
    insertJob: (task, by, nowMs) => insertJob(session, task, by, nowMs),
    listUnendedJobs: (limit) => listUnendedJobs(session, limit),
    saveJob: (job, nowMs) => saveJob(session, job, nowMs),
    cancelJob: (id, nowMs) => cancelJob(session, id, nowMs),
    takeEndedJobs: () => takeEndedJobs(session),
    loadSetting: (name) => loadSetting(session, name),
    makeSetting: (name, value) => makeSetting(session, name, value),
    saveSetting: (name, value) => saveSetting(session, name, value),
  } satisfies Partial<WriteTx>
}

function operationVerbs({ session }: WriteParts) {
  return {
    addOperatorEvent: (event, nowMs) => insertOperatorEvent(session, event, nowMs),
    addAction: (action) => insertAction(session, action),
    forgetForms: () => forgetForms(session),
    endSession: (ended) => endSession(session, ended),
    beginTrouble: (subject, nowMs) => beginTrouble(session, subject, nowMs),
    endTrouble: (subject) => endTrouble(session, subject),
    listTroubles: (prefix) => listTroubles(session, prefix),
    saveTrouble: (trouble) => saveTrouble(session, trouble),
    countQuarantine: (reason, count, nowMs) => countQuarantine(session, reason, count, nowMs),
    takeQuarantineCounts: (limit) => takeQuarantineCounts(session, limit),
    addTallies: (additions) => addTallies(session, additions),
    noteFlush: (flush) => noteFlush(session, flush),
    findCounted: (span, newer) => findCounted(session, span, newer),
    pruneTallies: (span, beforeMs, limit) => pruneTallies(session, span, beforeMs, limit),
    async pruneOperations(beforeMs, limit) {
      await pruneTroubles(session, beforeMs)
      const events = await pruneOperatorEvents(session, beforeMs, limit)
      return events === limit ? limit : events + (await pruneActions(session, beforeMs, limit - events))
    },
  } satisfies Partial<WriteTx>
}
