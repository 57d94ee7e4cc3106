import type { EntryChange } from '../domain/changes.ts'
import type { Entry } from '../domain/history.ts'
import { carriedBy, carriedFor, type Source } from './carried-event.ts'
import type { Carried, FeedEvent, ParcelState, WriteTx } from './ports.ts'
import { isBackfill, queueDeliveries } from './queue-deliveries.ts'

export interface Told {
  readonly changes: readonly EntryChange[]
  /** An entry that was backfill until this push; null: there is none. */
  readonly revealed: Entry | null
  /** The entries of a parcel that was just made of several: sightings may be of other entries now than when they were told. */
  readonly rearranged: readonly Entry[]
  readonly parcel: ParcelState
  readonly source: Source
  readonly nowMs: number
  readonly missedPushGraceMs: number
}

/** Puts changes in the feed, oldest entry first, and queues what endpoints are owed for them; says how many deliveries that made. */
export async function tellChanges(tx: WriteTx, told: Told): Promise<number> {
  const { source, revealed } = told
  let queued = 0
  for (const change of told.changes.toSorted((a, b) => a.entry.sequence - b.entry.sequence)) queued += await tellChange(tx, told, change)
  for (const entry of told.rearranged) {
    const isChanged = told.changes.some((change) => change.entry === entry)
    if (!isChanged && !(await isTold(tx, entry))) queued += await tellChange(tx, told, { kind: 'split', entry })
  }
  if (revealed !== null) queued += await tellAs(tx, told, { feed: 'update', entry: revealed, carried: carriedBy(source), as: 'revealed' })
  return queued
}

async function tellChange(tx: WriteTx, told: Told, { kind, entry }: EntryChange): Promise<number> {
  const { source, parcel } = told
  if (kind === 'entry') {
    if (source.kind === 'poll') await expectPush(tx, told, entry)
    return await tellAs(tx, told, { feed: kind, entry, carried: carriedBy(source), as: 'new' })
  }
  if (kind !== 'update' && !(await isTold(tx, entry))) {
    const carried = await carriedFor(tx, { entry, parcelId: parcel.parcelId, source })
    return await tellAs(tx, told, { feed: kind, entry, carried, as: 'new' })
  }
  tx.appendFeed({ sequence: tx.nextSequence(), kind, parcelId: parcel.parcelId, entry: entry.sequence, carries: null })
  return 0
}

interface Telling {
  readonly feed: FeedEvent['kind']
  readonly entry: Entry
  readonly carried: Carried
  readonly as: 'new' | 'revealed'
}

/** Puts an entry in the feed with what endpoints are sent for it. */
function tellAs(tx: WriteTx, { parcel, nowMs }: Told, { feed, entry, carried, as }: Telling): Promise<number> {
  const sequence = feed === 'entry' ? entry.sequence : tx.nextSequence()
  const backfill = carried.kind === 'composed' && isBackfill(entry, parcel)
  const carries = carried.kind === 'push' ? { kind: carried.kind, inboxId: carried.inboxId } : { kind: carried.kind, backfill }
  tx.appendFeed({ sequence, kind: feed, parcelId: parcel.parcelId, entry: entry.sequence, carries })
  return queueDeliveries(tx, { sequence, entry, parcelId: parcel.parcelId, carried, backfill, kind: as, nowMs })
}

/**
 * Whether endpoints were told of an entry: of one of its parts as an event of its own. What was part of another entry was not (DOMAIN 7.1);
 * and what was told of before it became part of another is not told of again.
 */
async function isTold(tx: WriteTx, { members }: Entry): Promise<boolean> {
  for (const { sequence } of members) if (await tx.isRelayed(sequence)) return true
  return false
}

/** Until its grace is over nobody can say that its push was missed (DOMAIN 6.6). */
async function expectPush(tx: WriteTx, { parcel, nowMs, missedPushGraceMs }: Told, entry: Entry): Promise<void> {
  await tx.expectPush({
    parcelId: parcel.parcelId,
    entry: entry.sequence,
    eventAtMs: entry.atMs,
    foundAtMs: nowMs,
    dueAtMs: nowMs + missedPushGraceMs,
  })
}

/** The entry that a push has just joined, if only polls had told of it, and told of it as backfill (DOMAIN 6.6). */
export function findRevealed(before: readonly Entry[], after: readonly Entry[], parcelBefore: ParcelState): Entry | null {
  if (before.length === 0) return null
  const backfill = new Set(
    before.filter((entry) => isBackfill(entry, parcelBefore)).flatMap((entry) => entry.members.map(({ sequence }) => sequence)),
  )
  if (backfill.size === 0) return null
  const isRevealed = ({ members }: Entry) =>
    members.some(({ sighting }) => sighting.source === 'push') &&
    members.every(({ sighting, sequence }) => sighting.source === 'push' || backfill.has(sequence)) &&
    members.some(({ sequence }) => backfill.has(sequence))
  return after.find(isRevealed) ?? null
}
