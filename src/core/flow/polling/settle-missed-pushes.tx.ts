import { audienceOf } from '../../domain/history/audience.ts'
import { deriveEntries, type Entry } from '../../domain/history/history.ts'
import type { ExpectedPush, MissedPush } from '../../domain/polling/poll.ts'
import type { Session } from '../../store/engine.ts'
import { pollableIdentifiers } from '../../store/history/parcels.ts'
import { dropExpectedPushes, duePushes } from '../../store/polling/expected-pushes.ts'
import type { Transactions, WriteTx } from '../../store/write-store.ts'
import type { WriteSide } from '../write-side.ts'

/** One transaction settles this many entries. */
const SETTLED_AT_ONCE = 256

/**
 * Decides whether the pushes of entries that a poll found were missed (DOMAIN 6.6). Each push had a grace period to arrive, which is now over.
 * Each query handles many entries, so that parcels stay locked only for a few round trips.
 */
export function createSettleMissedPushes(store: Transactions): WriteSide['settleMissedPushes'] {
  return (nowMs) =>
    store.transaction(
      async (tx) => {
        const due = await lockDue(tx, nowMs)
        if (due.length === 0) return []
        dropExpectedPushes(
          tx,
          due.map(({ entry }) => entry),
        )
        const sightings = await tx.loadSightings([...new Set(due.map(({ parcelId }) => parcelId))])
        const entries = new Map([...sightings].map(([parcelId, kept]) => [parcelId, deriveEntries(kept)]))
        const missed = due.filter(({ parcelId, entry }) => wasMissed(entries.get(parcelId) ?? [], entry))
        return await Promise.all(missed.map((one) => namedAsMissed(tx, one, nowMs)))
      },
      { ofRole: 'poller' },
    )
}

/**
 * Locks the parcels of the due entries until the transaction ends, and returns the entries. Reads the entries again after the locking,
 * because a parcel may have been joined to another just before. An entry whose parcel is then not locked waits for the next call.
 */
async function lockDue(tx: WriteTx, nowMs: number): Promise<readonly ExpectedPush[]> {
  const seen = await duePushes(tx, nowMs, SETTLED_AT_ONCE)
  if (seen.length === 0) return []
  const locked = await tx.findParcels([...new Set(seen.map(({ parcelId }) => parcelId))])
  const lockedIds = new Set(locked.map(({ parcelId }) => parcelId))
  return (await duePushes(tx, nowMs, SETTLED_AT_ONCE)).filter(({ parcelId }) => lockedIds.has(parcelId))
}

/** Whether a push should have reported an entry: only polls have reported it, and it is not backfill (DOMAIN 6.6). */
function wasMissed(entries: readonly Entry[], sequence: number): boolean {
  const entry = entries.find((one) => one.members.some((kept) => kept.sequence === sequence))
  if (entry === undefined || audienceOf(entry.members).kind === 'backfill') return false
  return entry.members.every((kept) => kept.sighting.source === 'poll')
}

async function namedAsMissed(tx: Session, { parcelId, eventAtMs, foundAtMs }: ExpectedPush, nowMs: number): Promise<MissedPush> {
  const [identifier = null] = await pollableIdentifiers(tx, parcelId, nowMs)
  return { parcelId, identifier, eventAtMs, foundAtMs }
}
