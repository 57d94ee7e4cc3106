import type { EndpointState } from '../domain/delivery/endpoint-state.ts'
import type { WriteStore, WriteTx } from '../flow/write-store.ts'
import { cancelJob, insertJob, listUnendedJobs, saveJob } from './admin/jobs.ts'
import { cancelRemoved, queueDelivery, reviewClaims, saveComposedEvent } from './delivery/deliveries.ts'
import { listEndpoints, removeEndpoint, reserveEndpoint, saveEndpoint, saveHealth } from './delivery/endpoints.ts'
import { appendFeed, duePushes, expectPush, prunedTo, settlePush } from './delivery/feed.ts'
import { readFeedEntries } from './delivery/feed-entries.ts'
import { findNextDeliveries, findProbe, hastenDelivery, waitsForOthers } from './delivery/next-deliveries.ts'
import { replayDeliveries } from './delivery/replays.ts'
import { saveSettlements } from './delivery/settlements.ts'
import type { WriteEngine } from './engine.ts'
import { dropAnswers, loadAnswers, saveAnswer } from './history/answers.ts'
import { createContents } from './history/contents.ts'
import { joinParcels } from './history/join.ts'
import { createKnownParcels } from './history/known-parcels.ts'
import { markRefused, pollableIdentifiers } from './history/parcels.ts'
import { loadOrder, loadSightings, loadSightingsOf, saveSighting } from './history/sightings.ts'
import { deleteInbox, listPushes, resettlePush, saveInbox } from './ingest/inbox.ts'
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
  /** The last number given; null: not read yet, or given in a transaction that was undone. */
  let sequence: number | null = null
  /** As they stand; null: not read yet, or changed. Looked at for every new entry. */
  let endpoints: readonly EndpointState[] | null = null

  /** What is remembered may not be so: a transaction was undone, or somebody else has written. */
  function forget(): void {
    sequence = null
    forgetRows()
  }

  function forgetRows(): void {
    endpoints = null
    contents.forget()
    known.forget()
  }

  const tx: WriteTx = {
    nextSequence() {
      sequence = (sequence ?? 0) + 1
      return sequence
    },
    saveInbox: (entry) => saveInbox(session, entry),
    deleteInbox: (inboxId) => deleteInbox(session, inboxId),
    findPush: (inboxId) => findPush(session, inboxId),
    resettlePush: (inboxId, entry) => resettlePush(session, inboxId, entry),
    findIdentifiers: known.findIdentifiers,
    recallParcel: known.recallParcel,
    saveIdentifier: known.saveIdentifier,
    createParcel: known.create,
    findParcel: known.find,
    async loadParcel(parcelId) {
      const state = await known.find(parcelId)
      if (state === null) throw new Error(`the store holds an identifier of parcel ${parcelId}, and no such parcel`)
      return state
    },
    saveParcel: known.save,
    async loadParcels(parcelIds) {
      const states = await known.findMany(parcelIds)
      if (states.length < parcelIds.length)
        throw new Error(`the store holds identifiers of parcels ${parcelIds.join()}, and not all of them`)
      return states
    },
    async joinParcels(join) {
      const identifiers = await joinParcels(session, contents, join)
      known.forgetJoined(
        join.others.map(({ state }) => state.parcelId),
        identifiers,
      )
      known.save(join.parcel)
    },
    loadSightingsOf: (parcelIds) => loadSightingsOf(session, contents, parcelIds),
    loadSightings: (parcelId, second) => loadSightings(session, contents, parcelId, second),
    saveSighting: (parcelId, kept) => saveSighting(session, contents, parcelId, kept),
    loadAnswers: (parcelId) => loadAnswers(session, parcelId),
    loadOrder: (parcelId) => loadOrder(session, parcelId),
    saveAnswer: (request) => saveAnswer(session, request),
    dropAnswers: (parcelId, answers) => dropAnswers(session, parcelId, answers),
    appendFeed: (event) => appendFeed(session, event),
    feedSpan: async () => ({ last: sequence ?? 0, prunedTo: await prunedTo(session) }),
    readFeedEntries: (request) => readFeedEntries(session, contents, request),
    listPushes: (request) => listPushes(session, request),
    expectPush: (expected) => expectPush(session, expected),
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
