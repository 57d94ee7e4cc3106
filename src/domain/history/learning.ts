import type { Entry } from './history.ts'
import type { KeptSighting } from './sightings.ts'

/** Where a report about an entry came from: a push of the carrier, or its answer to a poll. */
export type Source = KeptSighting['sighting']['source']

/** The first report of an entry by one source. */
export interface FirstReport {
  readonly source: Source
  /** Epoch milliseconds; null: not known. */
  readonly atMs: number | null
}

export interface Learning {
  readonly first: FirstReport
  /** The first report by the other source; null: that source has not reported the entry. */
  readonly confirmed: FirstReport | null
}

/**
 * Finds out which source reported an entry first, and when the other source reported it.
 *
 * Unlike everything else about an entry, the result depends on the order in which observations arrive. A repeated sighting does not change the
 * result, because a sighting keeps the time at which the relay first learnt of it.
 */
export function learningOf({ members }: Pick<Entry, 'members'>): Learning {
  const first = members.reduce(earlier)
  const { source } = first.sighting
  const others = members.filter(({ sighting }) => sighting.source !== source)
  return { first: reportOf(first), confirmed: others.length === 0 ? null : reportOf(others.reduce(earlier)) }
}

/** Compares sequences and not times, because some sightings have no time, and because the clock may have been put back. */
function earlier(a: KeptSighting, b: KeptSighting): KeptSighting {
  return b.sequence < a.sequence ? b : a
}

function reportOf({ sighting, learntAtMs }: KeptSighting): FirstReport {
  return { source: sighting.source, atMs: learntAtMs }
}
