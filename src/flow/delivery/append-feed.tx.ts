import type { FeedEvent, Payload } from '../../domain/delivery/feed-entry.ts'
import type { EntryChange } from '../../domain/history/changes.ts'
import type { Entry } from '../../domain/history/history.ts'
import type { ParcelState } from '../../domain/history/parcel-state.ts'
import type { KeptSighting } from '../../domain/history/sightings.ts'
import { toldBy, toldEither, toldOf } from '../../domain/history/told.ts'
import type { WriteTx } from '../write-store.ts'
import { enqueueDeliveries, isBackfill } from './enqueue.tx.ts'
import { createFindPushes, type FindPushes, firstOf, payloadFor, payloadOf, type Source } from './event-payload.tx.ts'

export interface FeedBatch {
  readonly changes: readonly EntryChange[]
  /** Every entry that may be owed to somebody now, changed or not. */
  readonly entries: readonly Entry[]
  readonly parcel: ParcelState
  readonly source: Source
}

/** An event of the feed, and what endpoints are sent for it; null: nothing. */
export interface FeedAddition {
  readonly event: FeedEvent
  readonly entry: Entry
  readonly carried: Payload | null
  /** The sighting that it tells of, as it is from then on. */
  readonly told: KeptSighting | null
}

/**
 * What there is to tell of what was learnt: the changes, oldest entry first, then entries that endpoints are owed though nothing of them
 * changed. Whom an entry is owed to is decided by whom its sightings were told of, and by nothing that may have moved since (DOMAIN 6.6).
 */
export async function planEvents(tx: WriteTx, learnt: FeedBatch): Promise<readonly FeedAddition[]> {
  const planned: FeedAddition[] = []
  const findPushes = createFindPushes(tx, learnt.parcel.parcelId)
  for (const change of learnt.changes.toSorted((a, b) => a.entry.sequence - b.entry.sequence)) {
    planned.push(isOwed(change.entry) ? await planTelling(tx, learnt, change, findPushes) : planChange(tx, learnt, change))
  }
  if (learnt.entries.length === learnt.changes.length) return planned
  const changed = new Set(learnt.changes.map(({ entry }) => entry))
  const owed = learnt.entries.filter((entry) => !changed.has(entry) && isOwed(entry))
  for (const entry of owed.sort((a, b) => a.sequence - b.sequence)) {
    const kind = toldOf(entry.members).kind === 'nobody' ? 'split' : 'update'
    planned.push(await planTelling(tx, learnt, { kind, entry }, findPushes))
  }
  return planned
}

/** Whether somebody was not told of an entry and is owed it: everybody is owed what a push brought, and what was told of to nobody yet. */
function isOwed({ members }: Entry): boolean {
  const { kind } = toldOf(members)
  if (kind === 'nobody' || kind === 'all') return kind === 'nobody'
  return members.some(({ sighting }) => sighting.source === 'push')
}

function planChange(tx: WriteTx, { parcel }: FeedBatch, { kind, entry }: EntryChange): FeedAddition {
  const event = { sequence: tx.nextSequence(), kind, parcelId: parcel.parcelId, entry: entry.sequence, carries: null }
  return { event, entry, carried: null, told: null }
}

async function planTelling(
  tx: WriteTx,
  { parcel, source }: FeedBatch,
  { kind, entry }: EntryChange,
  findPushes: FindPushes,
): Promise<FeedAddition> {
  const { parcelId } = parcel
  const isNew = kind === 'entry'
  const { carried, sighting } = isNew
    ? { carried: payloadOf(source), sighting: firstOf(entry) }
    : await payloadFor({ entry, source, findPushes })
  const sequence = isNew ? entry.sequence : tx.nextSequence()
  const toldBefore = toldOf(entry.members)
  const backfill = carried.kind === 'composed' && isBackfill(entry, parcel)
  const carries = carried.kind === 'push' ? { kind: carried.kind, inboxId: carried.inboxId } : { kind: carried.kind, backfill }
  return {
    event: { sequence, kind, parcelId, entry: sighting.sequence, carries: { ...carries, toldBefore } },
    entry,
    carried,
    told: { ...sighting, told: toldEither(sighting.told, toldBy(toldBefore, { sequence, backfill })) },
  }
}

/** Puts what was planned in the feed, and queues what endpoints are owed for it; says how many deliveries that made. */
export async function appendEvents(tx: WriteTx, planned: readonly FeedAddition[], nowMs: number): Promise<number> {
  let queued = 0
  for (const { event, entry, carried } of planned) {
    tx.appendFeed(event)
    const { sequence, parcelId, carries } = event
    if (carries === null || carried === null) continue
    const backfill = carries.kind === 'composed' && carries.backfill
    queued += await enqueueDeliveries(tx, { sequence, entry, parcelId, carried, backfill, toldBefore: carries.toldBefore, nowMs })
  }
  return queued
}

/** Until its grace is over nobody can say that the push of an entry was missed; backfill never was (DOMAIN 6.6). */
export async function expectPushes(tx: WriteTx, planned: readonly FeedAddition[], nowMs: number, missedPushGraceMs: number): Promise<void> {
  for (const { event, entry, told } of planned) {
    if (event.kind !== 'entry' || told?.told.kind === 'backfill') continue
    const found = { parcelId: event.parcelId, entry: entry.sequence, eventAtMs: entry.atMs, foundAtMs: nowMs }
    await tx.expectPush({ ...found, dueAtMs: nowMs + missedPushGraceMs })
  }
}
