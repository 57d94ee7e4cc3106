import { certainNeeds } from '../../domain/history/batch-needs.ts'
import type { WriteSet } from '../../domain/history/change-set.ts'
import type { KeptSighting } from '../../domain/history/sightings.ts'
import { type Loaded, type Needs, pushKey } from '../../domain/history/snapshot.ts'
import { enqueueComposed, queueDelivery } from '../delivery/deliveries.ts'
import { appendFeed } from '../delivery/feed.ts'
import type { Session } from '../engine.ts'
import { dropAnswers, saveAnswer } from '../history/answers.ts'
import type { Contents } from '../history/contents.ts'
import { joinParcels } from '../history/join.ts'
import { loadParcelFacts } from '../history/parcel-view.ts'
import { loadSightings, loadSightingsOf, saveSighting } from '../history/sightings.ts'
import { countDuplicate, deleteInbox, findTwin, insertPush, updateInboxState } from '../ingest/inbox.ts'
import type { Leases } from '../polling/due-polls.ts'
import { expectPush } from '../polling/expected-pushes.ts'
import type { KnownParcels } from './known-parcels.ts'

interface ApplySource extends BatchSource {
  readonly leases: Pick<Leases, 'release'>
}

/** Writes the changes of a batch. Its ids and sequences are final, because SQLite has only one writer. */
export async function applyChanges(source: ApplySource, writes: readonly WriteSet[]): Promise<void> {
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

async function applyHistory({ session, contents }: BatchSource, { sightings, answers }: WriteSet): Promise<void> {
  for (const { parcelId, kept } of sightings) {
    const contentId = contents.recall(kept.content) ?? (await contents.idOf(kept.content))
    saveSighting(session, parcelId, contentId, kept)
  }
  for (const { dropped, ...answer } of answers) {
    saveAnswer(session, answer)
    dropAnswers(session, answer.parcelId, dropped)
  }
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
export async function loadNeeds({ session, contents, known }: BatchSource, asked: Needs): Promise<Loaded> {
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
