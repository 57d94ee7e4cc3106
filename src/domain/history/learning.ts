import type { Entry } from './history.ts'
import type { KeptSighting } from './sightings.ts'

/** How the relay heard of entries: by the carrier's pushes, or by the answers to its polls. */
export type Door = KeptSighting['sighting']['source']

/** The first time that a door reported an entry. */
export interface Telling {
  readonly door: Door
  /** Epoch milliseconds; null: it happened before the relay kept such times. */
  readonly atMs: number | null
}

/** How the relay learnt of an entry. */
export interface Learning {
  readonly first: Telling
  /** When the other door reported the entry too; null: it has not. */
  readonly confirmed: Telling | null
}

/**
 * Decides how the relay learnt of an entry: which door reported it first, and when the other one did. Unlike everything else about an entry
 * this depends on the order of arrival, by its nature. No later arrival changes it: a sighting keeps the time at which it was first learnt
 * of over repeated polls and joins. Only if more sightings show that two entries are one, or one is two, does it follow the sightings of
 * the new entries.
 */
export function learningOf({ members }: Pick<Entry, 'members'>): Learning {
  const first = members.reduce(earlier)
  const { source } = first.sighting
  const others = members.filter(({ sighting }) => sighting.source !== source)
  return { first: tellingOf(first), confirmed: others.length === 0 ? null : tellingOf(others.reduce(earlier)) }
}

/** Compared by sequence, because every sighting has one and a clock may be put back. */
function earlier(a: KeptSighting, b: KeptSighting): KeptSighting {
  return b.sequence < a.sequence ? b : a
}

function tellingOf({ sighting, learntAtMs }: KeptSighting): Telling {
  return { door: sighting.source, atMs: learntAtMs }
}
