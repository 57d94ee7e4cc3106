import { compareBytes } from '../../text.ts'
import type { KeptSighting } from '../sightings.ts'
import { sightingId } from '../sightings.ts'
import type { ShownSighting } from './evidence.ts'

export interface MatchedSightings {
  /**
   * Stored sightings that were found in the bytes. `after` has the content as it is read now, and keeps the sequence, the audience and the
   * time of learning of `before`.
   */
  readonly matched: readonly { readonly before: KeptSighting; readonly after: KeptSighting }[]
  /** Stored sightings that are not in the bytes. */
  readonly unproven: readonly KeptSighting[]
  /** Sightings in the bytes that are not stored. */
  readonly missing: readonly ShownSighting[]
}

/**
 * Pairs each stored sighting of a parcel with one that this version of the relay reads from the stored bytes of pushes and answers.
 *
 * A newer version may parse the bytes differently, and so find another sighting in place of a stored one. Nothing says which sighting replaces
 * which. So this pairs the most similar sightings of the same source.
 */
export function matchSightings(stored: readonly KeptSighting[], shown: ReadonlyMap<string, ShownSighting>): MatchedSightings {
  const matched: { before: KeptSighting; after: KeptSighting }[] = []
  const found = new Set<string>()
  let unproven: KeptSighting[] = []
  for (const before of stored) {
    const id = sightingId(before)
    const now = found.has(id) ? undefined : shown.get(id)
    if (now === undefined) unproven.push(before)
    else {
      found.add(id)
      matched.push({ before, after: isSame(before, now) ? before : succeed(before, now) })
    }
  }
  if (found.size === shown.size) return { matched, unproven, missing: [] }
  let missing = [...shown].filter(([id]) => !found.has(id)).map(([, now]) => now)
  for (const similar of SIMILAR) {
    const candidates = Map.groupBy(missing.toSorted(compareShown), similar)
    const taken = new Set<ShownSighting>()
    const left: KeptSighting[] = []
    for (const before of unproven.toSorted((a, b) => a.sequence - b.sequence)) {
      const now = candidates.get(similar(before))?.shift()
      if (now === undefined) left.push(before)
      else {
        taken.add(now)
        matched.push({ before, after: succeed(before, now) })
      }
    }
    unproven = left
    missing = missing.filter((now) => !taken.has(now))
  }
  return { matched, unproven, missing }
}

function isSame(before: KeptSighting, now: ShownSighting): boolean {
  return before.askedAtMs === now.askedAtMs && JSON.stringify(before.sighting.extra) === JSON.stringify(now.sighting.extra)
}

function succeed({ sequence, learntAtMs, audience }: KeptSighting, now: ShownSighting): KeptSighting {
  return { ...now, sequence, learntAtMs, audience }
}

type Comparable = Pick<KeptSighting, 'sighting' | 'askedAtMs' | 'ordinal'>

/** Criteria of similarity, the strictest first. Two sightings are similar if the criterion gives the same text for both. */
const SIMILAR: readonly ((one: Comparable) => string)[] = [
  ({ sighting, askedAtMs, ordinal }) =>
    JSON.stringify([...statusOf(sighting), sighting.instant.text, sighting.location, askedAtMs, ordinal]),
  ({ sighting, askedAtMs }) => JSON.stringify([...statusOf(sighting), Math.floor(sighting.instant.atMs / 1000), askedAtMs]),
  ({ sighting, askedAtMs }) => JSON.stringify([sighting.source, Math.floor(sighting.instant.atMs / 1000), askedAtMs]),
  ({ sighting, askedAtMs }) => JSON.stringify([...statusOf(sighting), askedAtMs]),
]

function statusOf({ source, status, detailedStatus }: Comparable['sighting']): readonly string[] {
  return [source, status, detailedStatus]
}

/** Compares in a fixed order, so that equal stores give equal results. */
function compareShown(a: ShownSighting, b: ShownSighting): number {
  return a.sighting.instant.atMs - b.sighting.instant.atMs || compareBytes(sightingId(a), sightingId(b))
}
