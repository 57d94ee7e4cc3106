import { eraseParcels, NO_PARCELS, searchMentions } from '../../../upkeep/erasure/erasure.rows.ts'
import { removeParcels } from '../../../upkeep/retention/remove-aged.rows.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import { erasedEvent, type FeedEntries, type FeedEntriesRequest, type FeedParcel, retiredEvent } from '../../domain/delivery/feed-entry.ts'
import type { MarkedTombstone } from '../../domain/history/erased.ts'
import { wordsInBody } from '../../domain/names-in-text.ts'
import { decodePayloadRef } from '../codec.ts'
import { enqueueComposed, queueDelivery } from '../delivery/deliveries.ts'
import { listEndpoints, saveEndpoint } from '../delivery/endpoints.ts'
import { appendFeed, eventsAfter, type FeedRow, feedEntriesOf, feedParcel, leaveOutSent } from '../delivery/feed.ts'
import { cancelEach } from '../delivery/settlements.ts'
import type { Session, WriteEngine } from '../engine.ts'
import { type Contents, createContents, listUnused, markContents, removeContents, unmarkContents } from '../history/contents.ts'
import { lastInboxId } from '../ingest/inbox.ts'
import { createLeases } from '../polling/due-polls.ts'
import { loadNumber, SEQUENCE, saveSetting } from '../settings.ts'
import { statement } from '../statement.ts'
import { createWriteVerbs, type WriteParts, type WriteStore, type WriteTx } from '../write-store.ts'
import { applyChanges, loadNeeds } from './apply-changes.ts'
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
    cancelDeliveries: (deliveries, nowMs) =>
      cancelEach(
        session,
        deliveries.map(({ deliveryId }) => deliveryId),
        nowMs,
      ),
    async retireParcels(parcelIds, limit) {
      const retired = await removeParcels(session, parcelIds, limit)
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
      removeContents(
        session,
        unused.map(({ id }) => id),
      )
      for (const { json } of unused) contents.forgetId(json)
      unmarkContents(
        session,
        used.map(({ id }) => id),
      )
    },
  } satisfies Partial<WriteTx>
}

function erasingVerbs(
  { session, parcels, memory, contents: known }: Parts,
  { tombstones: kept, noteErased }: Pick<WriteEngine, 'tombstones' | 'noteErased'>,
  verbs: Pick<WriteTx, 'addTombstones' | 'saveTombstoneKey' | 'removeUnfinished'>,
) {
  return {
    async eraseParcels(parcelIds) {
      if (parcelIds.length === 0) return NO_PARCELS
      const { contents, ...erased } = await eraseParcels(session, parcelIds)
      const texts = await known.read(session, await listUnused(session, contents))
      noteErased({
        identifiers: erased.names.map(({ value }) => value),
        texts: [...texts.values()].flatMap(({ json }) => [...wordsInBody(Buffer.from(json))]),
      })
      removeContents(session, contents)
      known.forget()
      parcels.forgetGone(
        parcelIds,
        erased.names.map(({ value }) => value),
      )
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
    async searchMentions(request) {
      const { searched, words } = await searchMentions(session, request)
      if (searched.found.length > 0) noteErased({ identifiers: searched.found, texts: words })
      return searched
    },
    removeUnfinished(identifiers) {
      verbs.removeUnfinished(identifiers)
      noteErased({ identifiers, texts: [] })
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

const keptBody = statement<{ id: number }>()((db, p) =>
  db.selectFrom('inbox').select('id').where('id', '=', p.id).where('body', 'is not', null),
)

/**
 * See `WriteTx.readFeedEntries`. Entries have their current content, but the payload of the original event.
 *
 * It reads row by row, which is safe only because nobody else commits between two reads. Otherwise a parcel that is joined to another between
 * two reads would look erased.
 */
async function readFeedEntries(session: Session, contents: Contents, request: FeedEntriesRequest): Promise<FeedEntries> {
  const rows = await session.all(eventsAfter, request)
  const parcels = new Map<number, FeedParcel | null>()
  const read: FeedRow[] = []
  for (const row of rows) {
    if (row.payload_ref === null) continue
    const parcel = parcels.get(row.holder) ?? (await feedParcel(session, contents, row.holder))
    parcels.set(row.holder, parcel)
    const inboxId = inboxIdOf(row.payload_ref)
    const hasBody = inboxId !== null && (await session.all(keptBody, { id: inboxId })).length > 0
    read.push({ row, parcel, hasBody })
  }
  const entries = await leaveOutSent(session, request.endpointId, feedEntriesOf(read))
  return { entries, next: rows.at(-1)?.sequence ?? request.after, ended: rows.length < request.limit }
}

/** Returns the inbox id of the push whose bytes are sent; null: a composed event is sent. */
function inboxIdOf(ref: number): number | null {
  const payload = decodePayloadRef(ref)
  return payload.kind === 'push' ? payload.inboxId : null
}
