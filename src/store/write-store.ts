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
import type { WriteEngine } from './engine.ts'
import { applyChanges } from './history/apply-changes.ts'
import { createContents } from './history/contents.ts'
import { createKnownParcels } from './history/known-parcels.ts'
import { loadNeeds, loadSnapshot } from './history/load-snapshot.ts'
import { markRefused, pollableIdentifiers } from './history/parcels.ts'
import { loadSightings } from './history/sightings.ts'
import { lastInboxId } from './ingest/inbox.ts'
import { findPush } from './ingest/inbox-lists.ts'
import { findAskable, findDuePolls } from './polling/due-polls.ts'
import { createLeases } from './polling/leases.ts'
import { shiftSchedule } from './polling/schedule-shift.ts'
import { loadNumber, loadSetting, markLanguageAsked, SEQUENCE, saveSetting } from './settings.ts'

/** The store as recording sees it, on a database that writes. */
export function createWriteStore(engine: WriteEngine): WriteStore {
  const { session } = engine
  const contents = createContents(session)
  const known = createKnownParcels(session)
  const leases = createLeases()
  const source = { session, contents, known, leases }
  /** The last number given; null: not read yet, or given in a transaction that was undone. */
  let sequence: number | null = null
  /** The highest number that a push is kept under; null: not read yet, or changed. */
  let inboxId: number | null = null
  /** As they stand; null: not read yet, or changed. Looked at for every new entry. */
  let endpoints: readonly EndpointState[] | null = null

  /** What is remembered may not be so: a transaction was undone, or somebody else has written. */
  function forget(): void {
    sequence = null
    forgetRows()
  }

  function forgetRows(): void {
    inboxId = null
    endpoints = null
    contents.forget()
    known.forget()
  }

  const tx: WriteTx = {
    nextSequence() {
      sequence = (sequence ?? 0) + 1
      return sequence
    },
    findPush: (inboxId) => findPush(session, inboxId),
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
      endpoints ??= await listEndpoints(session)
      const lastInbox = inboxId ?? (await lastInboxId(session))
      const next = { parcelId: (await known.lastId()) + 1, sequence: (sequence ?? 0) + 1, inboxId: lastInbox + 1 }
      return { ...(await loadSnapshot(source, batch)), endpoints, next }
    },
    async loadNeeds(snapshot, needs, nowMs) {
      return { ...snapshot, ...(await loadNeeds(source, snapshot, needs, nowMs)) }
    },
    async applyChanges({ writes, next }) {
      await applyChanges(source, writes)
      sequence = next.sequence - 1
      // The highest number may be gone with a push that gave way to another.
      inboxId = writes.some(({ dropped }) => dropped.length > 0) ? null : next.inboxId - 1
    },
    feedSpan: async () => ({ last: sequence ?? 0, prunedTo: await prunedTo(session) }),
    readFeedEntries: (request) => readFeedEntries(session, contents, request),
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
    async listEndpoints() {
      endpoints ??= await listEndpoints(session)
      return endpoints
    },
    reserveEndpoint: (nowMs) => reserveEndpoint(session, nowMs),
    async saveEndpoint(state) {
      endpoints = null
      return await saveEndpoint(session, state)
    },
    saveHealth(endpointId, health) {
      endpoints = endpoints?.map((state) => (state.endpoint.id === endpointId ? { ...state, health } : state)) ?? null
      saveHealth(session, endpointId, health)
    },
    async removeEndpoint(endpointId, nowMs) {
      endpoints = null
      await removeEndpoint(session, endpointId, nowMs)
    },
    saveComposedEvent: (sequenceOfEvent, body) => saveComposedEvent(session, sequenceOfEvent, body),
    queueDelivery: (delivery) => queueDelivery(session, delivery),
    reviewClaims: (deliveryIds) => reviewClaims(session, deliveryIds),
    findNextDeliveries: (request) => findNextDeliveries(session, request),
    findProbe: (request) => findProbe(session, request),
    hastenDelivery: (deliveryId) => hastenDelivery(session, deliveryId),
    waitsForOthers: (endpointId, parcelId) => waitsForOthers(session, endpointId, parcelId),
    cancelRemoved: (limit) => cancelRemoved(session, limit),
    insertJob: (task, by, nowMs) => insertJob(session, task, by, nowMs),
    listUnendedJobs: (limit) => listUnendedJobs(session, limit),
    saveJob: (job, nowMs) => saveJob(session, job, nowMs),
    cancelJob: (id, nowMs) => cancelJob(session, id, nowMs),
    replayDeliveries: (request) => replayDeliveries(session, request),
    saveSettlements: (settled, nowMs) => saveSettlements(session, settled, nowMs),
    loadSetting: (name) => loadSetting(session, name),
    saveSetting: (name, value) => saveSetting(session, name, value),
  }

  return {
    async transaction(work) {
      try {
        return await engine.transaction(async () => {
          if (engine.changedElsewhere()) forget()
          const before = sequence ?? (await loadNumber(session, SEQUENCE))
          sequence = before
          const result = await work(tx)
          if (sequence !== before) await saveSetting(session, SEQUENCE, Buffer.from(String(sequence)))
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
