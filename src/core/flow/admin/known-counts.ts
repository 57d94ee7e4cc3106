import type { StoreCounts } from '../../domain/admin/parcel-list.ts'
import type { Reads, Relay } from '../relay.ts'

/** Counting this many parcels takes a good part of a second. So a store with at least this many is counted only once a minute. */
const LARGE = 500_000
const KEPT_MS = 60_000

type Parts = Pick<Relay, 'clock'> & Reads<'counts' | 'countQuarantined'>

/** Counts what the store holds. Pushes in quarantine are counted at each call. In a large store, all else is counted at most once a minute. */
export function createKnownCounts({ reads, clock }: Parts): () => Promise<StoreCounts> {
  let known: { readonly counts: Promise<StoreCounts>; readonly atMs: number } | null = null
  return async () => {
    if (known !== null && clock.monotonic() - known.atMs < KEPT_MS)
      return { ...(await known.counts), quarantined: await reads.countQuarantined() }
    const asked = { counts: reads.counts(clock.now()), atMs: clock.monotonic() }
    const counts = await asked.counts
    if (counts.parcels >= LARGE) known = asked
    return counts
  }
}
