import type { EndpointState } from '../domain/delivery/endpoint-state.ts'
import type { WriteStore, WriteTx } from '../flow/write-store.ts'
import { cancelJob, insertJob, listUnendedJobs, saveJob } from './admin/jobs.ts'
import { cancelRemoved, queueDelivery, reviewClaims, saveComposedEvent } from './delivery/deliveries.ts'
import { listEndpoints, removeEndpoint, reserveEndpoint, saveEndpoint, saveHealth } from './delivery/endpoints.ts'
import { duePushes, prunedTo, settlePush } from './delivery/feed.ts'
import { readFeedEntries } from './delivery/feed-entries.ts'
import { findNextDeliveries, findProbe, hastenDelivery, waitsForOthers } from './delivery/next-deliveries.ts'
import { replayDeliveries } from './delivery/replays.ts'
import { saveSettlements } from './delivery/settlements.ts'
import type { Session, WriteEngine } from './engine.ts'
import { applyChanges } from './history/apply-changes.ts'
import { type Contents, createContents } from './history/contents.ts'
import { createKnownParcels, type KnownParcels } from './history/known-parcels.ts'
import { loadNeeds, loadSnapshot } from './history/load-snapshot.ts'
import { markRefused, pollableIdentifiers } from './history/parcels.ts'
import { loadSightings } from './history/sightings.ts'
import { lastInboxId } from './ingest/inbox.ts'
import { findPush } from './ingest/inbox-lists.ts'
import { findAskable, findDuePolls } from './polling/due-polls.ts'
import { createLeases, type Leases } from './polling/leases.ts'
import { shiftSchedule } from './polling/schedule-shift.ts'
import { loadNumber, loadSetting, markLanguageAsked, SEQUENCE, saveSetting } from './settings.ts'

/** What is remembered of the store between transactions; null: not read yet, or it may have changed. */
interface Memory {
  /** The last number given. */
  sequence: number | null
  /** The highest number that a push is kept under. */
  inboxId: number | null
  /** As they stand: looked at for every new entry. */
  endpoints: readonly EndpointState[] | null
}

interface Parts {
  readonly session: Session
  readonly contents: Contents
  readonly known: KnownParcels
  readonly leases: Leases
  readonly memory: Memory
}

/** The store as the flows see it, on a database that writes. */
export function createWriteStore(engine: WriteEngine): WriteStore {
  const { session } = engine
  const contents = createContents(session)
  const known = createKnownParcels(session)
  const memory: Memory = { sequence: null, inboxId: null, endpoints: null }
  const parts: Parts = { session, contents, known, leases: createLeases(), memory }
  const tx: WriteTx = {
    ...historyVerbs(parts),
    ...feedVerbs(parts),
    ...pollingVerbs(parts),
    ...endpointVerbs(parts),
    ...deliveryVerbs(parts),
    ...adminVerbs(parts),
  }

  /** What is remembered may not be so: a transaction was undone, or somebody else has written. */
  function forget(): void {
    memory.sequence = null
    forgetRows()
  }

  function forgetRows(): void {
    memory.inboxId = null
    memory.endpoints = null
    contents.forget()
    known.forget()
  }

  return {
    async transaction(work) {
      try {
        return await engine.transaction(async () => {
          if (engine.changedElsewhere()) forget()
          const before = memory.sequence ?? (await loadNumber(session, SEQUENCE))
          memory.sequence = before
          const result = await work(tx)
          if (memory.sequence !== before) await saveSetting(session, SEQUENCE, Buffer.from(String(memory.sequence)))
          return result
        })
      } catch (error) {
        forget()
        throw error
      }
    },
    async savepoint(_tx, work) {
      try {
        return await engine.savepoint(work)
      } catch (error) {
        // Numbers given in it are not given again.
        forgetRows()
        throw error
      }
    },
    isStorageFailure: (error) => engine.isStorageFailure(error),
  }
}

function historyVerbs(parts: Parts) {
  const { session, contents, known, memory } = parts
  return {
    nextSequence() {
      memory.sequence = (memory.sequence ?? 0) + 1
      return memory.sequence
    },
    findIdentifiers: known.findIdentifiers,
    saveIdentifier: known.saveIdentifier,
    createParcel: known.create,
    findParcel: known.find,
    async loadParcel(parcelId) {
      const state = await known.find(parcelId)
      if (state === null) throw new Error(`the store holds an identifier of parcel ${parcelId}, and no such parcel`)
      return state
    },
    saveParcel: known.save,
    loadSightings: (parcelId, second) => loadSightings(session, contents, parcelId, second),
    async loadSnapshot(batch) {
      memory.endpoints ??= await listEndpoints(session)
      const lastInbox = memory.inboxId ?? (await lastInboxId(session))
      const next = { parcelId: (await known.lastId()) + 1, sequence: (memory.sequence ?? 0) + 1, inboxId: lastInbox + 1 }
      return { ...(await loadSnapshot(parts, batch)), endpoints: memory.endpoints, next }
    },
    async loadNeeds(snapshot, needs, nowMs) {
      return { ...snapshot, ...(await loadNeeds(parts, snapshot, needs, nowMs)) }
    },
    async applyChanges({ writes, next }) {
      await applyChanges(parts, writes)
      memory.sequence = next.sequence - 1
      // The highest number may be gone with a push that gave way to another.
      memory.inboxId = writes.some(({ dropped }) => dropped.length > 0) ? null : next.inboxId - 1
    },
  } satisfies Partial<WriteTx>
}

function feedVerbs({ session, contents, memory }: Parts) {
  return {
    feedSpan: async () => ({ last: memory.sequence ?? 0, prunedTo: await prunedTo(session) }),
    readFeedEntries: (request) => readFeedEntries(session, contents, request),
  } satisfies Partial<WriteTx>
}

function pollingVerbs({ session, known, leases }: Parts) {
  return {
    duePushes: (nowMs, limit) => duePushes(session, nowMs, limit),
    settlePush: (entry) => settlePush(session, entry),
    duePolls: (request) => findDuePolls(session, leases, request),
    askableOf: (request) => findAskable(session, leases, request),
    pollableIdentifiers: (parcelId, nowMs) => pollableIdentifiers(session, parcelId, nowMs),
    leasePolls: leases.take,
    releasePoll: leases.release,
    async shiftSchedule(request) {
      if (request.afterParcelId === 0) leases.putBack(request.byMs)
      known.forget()
      return await shiftSchedule(session, request)
    },
    markNotPollable: (identifier, nowMs) => markRefused(session, identifier, nowMs),
    markLanguageAsked: (parcelId, language, upTo) => markLanguageAsked(session, parcelId, language, upTo),
  } satisfies Partial<WriteTx>
}

function endpointVerbs({ session, memory }: Parts) {
  return {
    async listEndpoints() {
      memory.endpoints ??= await listEndpoints(session)
      return memory.endpoints
    },
    reserveEndpoint: (nowMs) => reserveEndpoint(session, nowMs),
    async saveEndpoint(state) {
      memory.endpoints = null
      return await saveEndpoint(session, state)
    },
    saveHealth(endpointId, health) {
      memory.endpoints = memory.endpoints?.map((state) => (state.endpoint.id === endpointId ? { ...state, health } : state)) ?? null
      saveHealth(session, endpointId, health)
    },
    async removeEndpoint(endpointId, nowMs) {
      memory.endpoints = null
      await removeEndpoint(session, endpointId, nowMs)
    },
  } satisfies Partial<WriteTx>
}

function deliveryVerbs({ session }: Parts) {
  return {
    saveComposedEvent: (sequenceOfEvent, body) => saveComposedEvent(session, sequenceOfEvent, body),
    queueDelivery: (delivery) => queueDelivery(session, delivery),
    reviewClaims: (deliveryIds) => reviewClaims(session, deliveryIds),
    findNextDeliveries: (request) => findNextDeliveries(session, request),
    findProbe: (request) => findProbe(session, request),
    hastenDelivery: (deliveryId) => hastenDelivery(session, deliveryId),
    waitsForOthers: (endpointId, parcelId) => waitsForOthers(session, endpointId, parcelId),
    cancelRemoved: (limit) => cancelRemoved(session, limit),
    replayDeliveries: (request) => replayDeliveries(session, request),
    saveSettlements: (settled, nowMs) => saveSettlements(session, settled, nowMs),
  } satisfies Partial<WriteTx>
}

function adminVerbs({ session }: Parts) {
  return {
    findPush: (inboxId) => findPush(session, inboxId),
    insertJob: (task, by, nowMs) => insertJob(session, task, by, nowMs),
    listUnendedJobs: (limit) => listUnendedJobs(session, limit),
    saveJob: (job, nowMs) => saveJob(session, job, nowMs),
    cancelJob: (id, nowMs) => cancelJob(session, id, nowMs),
    loadSetting: (name) => loadSetting(session, name),
    saveSetting: (name, value) => saveSetting(session, name, value),
  } satisfies Partial<WriteTx>
}
