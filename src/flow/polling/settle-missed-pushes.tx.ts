import { audienceOf } from '../../domain/history/audience.ts'
import { deriveEntries } from '../../domain/history/history.ts'
import type { MissedPush } from '../../domain/polling/poll.ts'
import type { WriteSide } from '../write-side.ts'
import type { WriteStore, WriteTx } from '../write-store.ts'

/** How many entries without a push are settled in one transaction. */
const SETTLED_AT_ONCE = 256

/** Decides which of the entries that a poll found were missed by the pushes, once their grace period is over (DOMAIN 6.6). */
export function createSettleMissedPushes(store: WriteStore): WriteSide['settleMissedPushes'] {
  return (nowMs) =>
    store.transaction(
      async (tx) => {
        const missed: MissedPush[] = []
        for (const { parcelId, entry, eventAtMs, foundAtMs } of await tx.duePushes(nowMs, SETTLED_AT_ONCE)) {
          await tx.dropExpectedPush(entry)
          if (!(await wasMissed(tx, parcelId, entry))) continue
          const [identifier = null] = await tx.pollableIdentifiers(parcelId, nowMs)
          missed.push({ parcelId, identifier, eventAtMs, foundAtMs })
        }
        return missed
      },
      { ofRole: true },
    )
}

/** Whether a push should have reported an entry: only polls did, and it was not backfill (DOMAIN 6.6). */
async function wasMissed(tx: WriteTx, parcelId: number, sequence: number): Promise<boolean> {
  const entries = deriveEntries(await tx.loadSightings(parcelId, null))
  const entry = entries.find((one) => one.members.some((kept) => kept.sequence === sequence))
  if (entry === undefined || audienceOf(entry.members).kind === 'backfill') return false
  return entry.members.every((kept) => kept.sighting.source === 'poll')
}
