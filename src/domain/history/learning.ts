import type { Entry } from './history.ts'
import type { KeptSighting } from './sightings.ts'

/** The source of a report about an entry: the carrier's push, or its answer to a poll. */
export type Source = KeptSighting['sighting']['source']

/** The first report of an entry by one source. */
export interface FirstReport {
  readonly source: Source
  /** Epoch milliseconds; null: the relay did not keep such times yet. */
  readonly atMs: number | null
}

/** How the relay learnt of an entry. */
export interface Learning {
  readonly first: FirstReport
  /** The first report by the other source; null: it has not reported the entry. */
  readonly confirmed: FirstReport | null
}

/**
 * Decides how the relay learnt of an entry: which source reported it first, and when the other one did.
 *
 * Unlike everything else about an entry, this depends on the order of arrival. Later arrivals do not change it, because a sighting keeps
 * the time at which the relay first learnt of it. If sightings show that two entries are one, or one is two, it is decided again for each.
 */
export function learningOf({ members }: Pick<Entry, 'members'>): Learning {
  const first = members.reduce(earlier)
  const { source } = first.sighting
  const others = members.filter(({ sighting }) => sighting.source !== source)
  return { first: reportOf(first), confirmed: others.length === 0 ? null : reportOf(others.reduce(earlier)) }
}

/** Compares sequences, not times: every sighting has a sequence, and a clock may be put back. */
function earlier(a: KeptSighting, b: KeptSighting): KeptSighting {
  return b.sequence < a.sequence ? b : a
}

function reportOf({ sighting, learntAtMs }: KeptSighting): FirstReport {
  return { source: sighting.source, atMs: learntAtMs }
}
