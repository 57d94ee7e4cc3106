import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import {
  erasedEvent,
  type FeedEntries,
  type FeedEntriesRequest,
  retiredEvent,
  updateEvent,
  watchdogEvent,
} from '../../domain/delivery/feed-entry.ts'
import { certainNeeds } from '../../domain/history/batch-needs.ts'
import type { WriteSet } from '../../domain/history/change-set.ts'
import type { MarkedTombstone } from '../../domain/history/erased.ts'
import type { KeptSighting } from '../../domain/history/sightings.ts'
import { type Loaded, type Needs, pushKey } from '../../domain/history/snapshot.ts'
import { wordsInBody } from '../../domain/names-in-text.ts'
import { decodePayloadRef } from '../codec.ts'
import { enqueueComposed, queueDelivery } from '../delivery/deliveries.ts'
import { listEndpoints, saveEndpoint } from '../delivery/endpoints.ts'
import { appendFeed, eventsAfter, type FeedRow, feedEntriesFor, feedParcels } from '../delivery/feed.ts'
import { cancelEach } from '../delivery/settlements.ts'
import type { Session, WriteEngine } from '../engine.ts'
import { dropAnswers, saveAnswer } from '../history/answers.ts'
import { type Contents, createContents, listUnused, markContents, removeContents, settleMarked } from '../history/contents.ts'
import { joinParcels } from '../history/join.ts'
import { saveContext } from '../history/order-contexts.ts'
import { saveOverwritten } from '../history/overwritten-rows.ts'
import { loadParcelFacts } from '../history/parcel-view.ts'
import { loadSightings, loadSightingsOf, saveSighting } from '../history/sighting-rows.ts'
import { countDuplicate, deleteInbox, findTwin, insertPush, lastInboxId, updateInboxState } from '../ingest/inbox-rows.ts'
import { createLeases, expectPush, type Leases } from '../polling/due-polls.ts'
import { loadNumber, SEQUENCE, saveSetting } from '../settings.ts'
import { statement } from '../statement.ts'
import { createWriteVerbs, type WriteParts, type WriteStore, type WriteTx } from '../write-store.ts'
import { createKnownParcels, type KnownParcels } from './known-parcels.ts'

/** Values that are cached between transactions; null: the value was not read yet, or may be stale. */
interface Memory {
  sequence: number | null
  inboxId: number | null
  /** Cached because every new entry needs them. */
  endpoints: readonly EndpointState[] | null
  /** The tombstones that the current transaction adds. */
  buried: MarkedTombstone[]
}

interface Parts extends WriteParts {
  readonly parcels: KnownParcels
  readonly memory: Memory
}

/** Makes the store on the connection that writes. It caches what it has written. */
export function createSqliteWriteStore(engine: WriteEngine): WriteStore {
  const { session } = engine
  const parts = openParts(engine)
  const { memory, contents, parcels } = parts
  const verbs = createWriteVerbs(parts)
  const tx: WriteTx = {
    ...verbs,
    ...recordingVerbs(parts),
    ...queuingVerbs(parts),
    ...retiringVerbs(parts),
    ...erasingVerbs(parts, engine, verbs),
    noteErased: engine.noteErased,
  }

  /** Clears all caches after a rollback or a write by another connection. */
  function forget(): void {
    memory.sequence = null
    memory.inboxId = null
    memory.endpoints = null
    memory.buried = []
    contents.forget()
    parcels.forget()
  }

  return {
    async transaction(work) {
      try {
        const done = await engine.transaction(async () => {
          if (engine.changedElsewhere()) forget()
          const before = memory.sequence ?? (await loadNumber(session, SEQUENCE))
          memory.sequence = before
          const result = await work(tx)
          if (memory.sequence !== before) await saveSetting(session, SEQUENCE, Buffer.from(String(memory.sequence)))
          // A tombstone must be on disk before the commit that removes its parcel.
          engine.tombstones.append(memory.buried)
          return result
        })
        memory.buried = []
        engine.tombstones.settle()
        return done
      } catch (error) {
        engine.tombstones.undo()
        forget()
        throw error
      }
    },
    isStorageFailure: (error) => engine.isStorageFailure(error),
    cleanStorage: () => engine.clean(),
    missedTombstones: async () => engine.tombstones.missed,
  }
}

function openParts({ session }: WriteEngine): Parts {
  const memory: Memory = { sequence: null, inboxId: null, endpoints: null, buried: [] }
  return {
    session,
    memory,
    contents: createContents(session),
    parcels: createKnownParcels(session),
    leases: createLeases(),
    endpoints: {
      async list() {
        memory.endpoints ??= await listEndpoints(session)
        return memory.endpoints
      },
      change() {
        memory.endpoints = null
      },
      note(endpointId, health) {
        memory.endpoints = memory.endpoints?.map((state) => (state.endpoint.id === endpointId ? { ...state, health } : state)) ?? null
      },
    },
    sequence: {
      last: async () => memory.sequence ?? 0,
      toCome: () => (memory.sequence ?? 0) + 1,
      // Nothing to do: SQLite has only one writer, so nobody else takes a number.
      nothingSince: () => undefined,
    },
  }
}

function queuingVerbs({ session, contents, memory, endpoints }: Parts) {
  return {
    readFeedEntries: (request) => readFeedEntries(session, contents, request),
    saveContexts(contexts) {
      for (const context of contexts) {
        const sequence = (memory.sequence ?? 0) + 1
        memory.sequence = sequence
        saveContext(session, { ...context, sequence })
        appendFeed(session, updateEvent(sequence, context.parcelId))
      }
    },
    async tellWatchdogs(news) {
      for (const one of news) {
        const sequence = (memory.sequence ?? 0) + 1
        memory.sequence = sequence
        appendFeed(session, watchdogEvent(sequence, one))
        if (one.body !== null) enqueueComposed(session, sequence, one.body)
        const { parcelId, nowMs } = one
        for (const endpointId of one.endpointIds)
          await queueDelivery(session, { endpointId, parcelId, sequence, inboxId: null, toldIn: null, nowMs })
      }
    },
    async queueComposed({ body, ...delivery }) {
      const sequence = (memory.sequence ?? 0) + 1
      memory.sequence = sequence
      enqueueComposed(session, sequence, body)
      await queueDelivery(session, { ...delivery, sequence, inboxId: null, toldIn: null })
    },
    async queueFeed({ composed, deliveries }) {
      for (const { sequence, body } of composed) enqueueComposed(session, sequence, body)
      for (const delivery of deliveries) await queueDelivery(session, delivery)
    },
    async saveQueuedTo(state, { next, ended }) {
      endpoints.change()
      await saveEndpoint(session, { ...state, queuedTo: ended ? null : next })
      return ended
    },
  } satisfies Partial<WriteTx>
}

function retiringVerbs({ session, contents, parcels, memory }: Parts) {
  return {
    cancelDeliveries: (deliveryIds, nowMs) => cancelEach(session, deliveryIds, nowMs),
    async retireParcels(parcelIds, drop) {
      const retired = await drop()
      if (retired === null) return { isDone: false }
      parcels.forgetGone(parcelIds, retired.identifiers)
      markContents(session, retired.contents)
      for (const parcelId of parcelIds) {
        memory.sequence = (memory.sequence ?? 0) + 1
        appendFeed(session, retiredEvent(memory.sequence, parcelId))
      }
      return { isDone: true }
    },
    removeTexts({ unused, used }) {
      settleMarked(session, { unused, used })
      for (const { json } of unused) contents.forgetId(json)
    },
  } satisfies Partial<WriteTx>
}

function erasingVerbs(
  { session, parcels, memory, contents: known }: Parts,
  { tombstones: kept, noteErased }: Pick<WriteEngine, 'tombstones' | 'noteErased'>,
  verbs: Pick<WriteTx, 'addTombstones' | 'saveTombstoneKey'>,
) {
  return {
    async eraseParcels(parcelIds, _identifiers, drop) {
      const erased = await drop()
      if (parcelIds.length === 0) return erased
      const { identifiers, contents, words = [] } = erased
      const texts = await known.read(session, await listUnused(session, contents))
      noteErased({
        identifiers,
        texts: [...words, ...[...texts.values()].flatMap(({ json }) => [...wordsInBody(Buffer.from(json))])],
      })
      removeContents(session, contents)
      known.forget()
      parcels.forgetGone(parcelIds, identifiers)
      for (const parcelId of parcelIds) {
        memory.sequence = (memory.sequence ?? 0) + 1
        appendFeed(session, erasedEvent(memory.sequence, parcelId))
      }
      return erased
    },
    addTombstones(tombstones) {
      verbs.addTombstones(tombstones)
      memory.buried.push(...tombstones)
    },
    async saveTombstoneKey(sealed) {
      await verbs.saveTombstoneKey(sealed)
      // The order of these two writes does not matter: the store and the file hold the same key, which is only encrypted differently.
      kept.replaceKey(sealed)
    },
  } satisfies Partial<WriteTx>
}

function recordingVerbs(parts: Parts) {
  const { session, parcels, memory, endpoints } = parts
  const source = { session, contents: parts.contents, known: parcels, leases: parts.leases }
  return {
    async beginBatch(names) {
      const lastInbox = memory.inboxId ?? (await lastInboxId(session))
      const next = { parcelId: (await parcels.lastId()) + 1, sequence: (memory.sequence ?? 0) + 1, inboxId: lastInbox + 1 }
      const identifiers = new Map((await parcels.findIdentifiers(names)).map((identifier) => [identifier.value, identifier]))
      return { next, identifiers, endpoints: await endpoints.list() }
    },
    loadNeeds: (needs) => loadNeeds(source, needs),
    async applyChanges({ writes, next }) {
      await applyChanges(source, writes)
      memory.sequence = next.sequence - 1
      memory.inboxId = next.inboxId - 1
    },
  } satisfies Partial<WriteTx>
}

const keptBodies = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('inbox').select('id').where('id', 'in', oneOf(p.ids)).where('body', 'is not', null),
)

/**
 * See `WriteTx.readFeedEntries`. Entries have their current content, but the payload of the original event.
 *
 * It reads without locks, which is safe only because nobody else commits between two reads. Otherwise a parcel that is joined to another between
 * two reads would look erased.
 */
async function readFeedEntries(session: Session, contents: Contents, request: FeedEntriesRequest): Promise<FeedEntries> {
  const rows = await session.all(eventsAfter, request)
  const sent = rows.flatMap((row) => (row.payload_ref === null ? [] : [{ row, inboxId: inboxIdOf(row.payload_ref) }]))
  const parcels = await feedParcels(session, contents, [...new Set(sent.map(({ row }) => row.holder))])
  const kept = new Set((await session.all(keptBodies, { ids: sent.flatMap(({ inboxId }) => inboxId ?? []) })).map(({ id }) => id))
  const read = sent.map(({ row, inboxId }): FeedRow => {
    return { row, parcel: parcels.get(row.holder) ?? null, hasBody: inboxId !== null && kept.has(inboxId) }
  })
  const sending = await feedEntriesFor(session, request.endpointId, read)
  return { ...sending, next: rows.at(-1)?.sequence ?? request.after, ended: rows.length < request.limit }
}

/** Returns the inbox id of the push whose bytes are sent; null: a composed event is sent. */
function inboxIdOf(ref: number): number | null {
  const payload = decodePayloadRef(ref)
  return payload.kind === 'push' ? payload.inboxId : null
}

interface ApplySource extends BatchSource {
  readonly leases: Pick<Leases, 'release'>
}

/** Writes the changes of a batch. Its ids and sequences are final, because SQLite has only one writer. */
async function applyChanges(source: ApplySource, writes: readonly WriteSet[]): Promise<void> {
  for (const set of writes) {
    await applyJoin(source, set)
    applyParcels(source, set)
    applyInbox(source, set)
    await applyHistory(source, set)
    await applyFeed(source, set)
    for (const parcelId of set.released) source.leases.release(parcelId)
  }
}

async function applyJoin({ session, contents, known }: BatchSource, { join }: WriteSet): Promise<void> {
  if (join === null) return
  const identifiers = await joinParcels(session, contents, join)
  known.forgetGone(
    join.others.map(({ state }) => state.parcelId),
    identifiers,
  )
}

function applyParcels({ known }: BatchSource, { parcels, created, identifiers, statuses }: WriteSet): void {
  for (const status of statuses) known.noteStatus(status)
  for (const state of parcels.values()) {
    if (created.has(state.parcelId)) known.insert(state)
    else known.save(state)
  }
  for (const identifier of identifiers) known.saveIdentifier(identifier)
}

function applyInbox({ session }: BatchSource, { inbox, dropped, duplicates }: WriteSet): void {
  for (const push of inbox) {
    if (push.push.inboxId === undefined) insertPush(session, push)
    else updateInboxState(session, push)
  }
  for (const inboxId of dropped) deleteInbox(session, inboxId)
  for (const inboxId of duplicates) countDuplicate(session, inboxId)
}

async function applyHistory({ session, contents }: BatchSource, { sightings, answers, overwritten }: WriteSet): Promise<void> {
  for (const { parcelId, kept } of sightings) {
    const contentId = contents.recall(kept.content) ?? (await contents.idOf(kept.content))
    saveSighting(session, parcelId, contentId, kept)
  }
  for (const { dropped, ...answer } of answers) {
    saveAnswer(session, answer)
    dropAnswers(session, answer.parcelId, dropped)
  }
  for (const one of overwritten) saveOverwritten(session, one)
}

async function applyFeed({ session, known }: BatchSource, set: WriteSet): Promise<void> {
  const { feed, eventValues, composed, deliveries, expected } = set
  for (const event of feed) appendFeed(session, event)
  for (const value of eventValues) known.noteEventValue(value)
  for (const { sequence, body } of composed) enqueueComposed(session, sequence, body)
  for (const delivery of deliveries) await queueDelivery(session, delivery)
  for (const push of expected) await expectPush(session, push)
}

/** The writing connection and its caches. */
interface BatchSource {
  readonly session: Session
  readonly contents: Contents
  readonly known: KnownParcels
}

/** See `WriteTx.loadNeeds`. Loads parcels (mostly from the cache) and pushes first, because they make some other reads needless. */
async function loadNeeds({ session, contents, known }: BatchSource, asked: Needs): Promise<Loaded> {
  const parcels = await known.findMany(asked.parcels)
  const pushes = new Map<string, number>()
  for (const { parcelId, digest } of asked.pushes) {
    const inboxId = await findTwin(session, parcelId, digest)
    if (inboxId !== null) pushes.set(pushKey(parcelId, digest), inboxId)
  }
  const needs = asked.parcels.length === 0 ? asked : certainNeeds(asked, parcels, pushes)
  const seconds = new Map<number, KeptSighting[]>()
  for (const { parcelId, second } of needs.seconds) {
    const found = await loadSightings(session, contents, parcelId, second)
    seconds.set(parcelId, [...(seconds.get(parcelId) ?? []), ...found])
  }
  const whole = await loadSightingsOf(session, contents, needs.whole)
  return { needs, parcels, pushes, seconds, whole, ...(await loadParcelFacts(session, needs)) }
}
