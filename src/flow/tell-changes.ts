import type { EntryChange } from '../domain/changes.ts'
import type { Entry } from '../domain/history.ts'
import type { ParcelState, WriteTx } from './ports.ts'
import { isBackfill, queueDeliveries, type Source } from './queue-deliveries.ts'

export interface Told {
  readonly changes: readonly EntryChange[]
  /** An entry that was backfill until this push; null: there is none. */
  readonly revealed: Entry | null
  readonly parcel: ParcelState
  readonly source: Source
  readonly nowMs: number
  readonly missedPushGraceMs: number
}

/** Puts changes in the feed, oldest entry first, and queues what endpoints are owed for them; says how many deliveries that made. */
export async function tellChanges(tx: WriteTx, told: Told): Promise<number> {
  const { parcel, source, nowMs, revealed } = told
  let queued = 0
  for (const change of told.changes.toSorted((a, b) => a.entry.sequence - b.entry.sequence)) {
    const { kind, entry } = change
    const sequence = kind === 'entry' ? entry.sequence : tx.nextSequence()
    await tx.appendFeed({ sequence, kind, parcelId: parcel.parcelId, entry: entry.sequence })
    if (kind === 'entry') {
      queued += await queueDeliveries(tx, { sequence, entry, parcel, source, kind: 'new', nowMs })
      if (source.kind === 'poll') await expectPush(tx, told, entry)
    }
  }
  if (revealed !== null) {
    const sequence = tx.nextSequence()
    await tx.appendFeed({ sequence, kind: 'update', parcelId: parcel.parcelId, entry: revealed.sequence })
    queued += await queueDeliveries(tx, { sequence, entry: revealed, parcel, source, kind: 'revealed', nowMs })
  }
  return queued
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
