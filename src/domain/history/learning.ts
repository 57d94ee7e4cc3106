import type { Entry } from './history.ts'
import type { KeptSighting } from './sightings.ts'

/** What tells the relay of entries: the carrier's pushes, or the answers to its polls. */
export type Door = KeptSighting['sighting']['source']

/** The first time that a door told of an entry. */
export interface Telling {
  readonly door: Door
  /** Epoch milliseconds; null: it was before the relay kept that. */
  readonly atMs: number | null
}

/** How the relay learnt of an entry. */
export interface Learning {
  readonly first: Telling
  /** When the other door agreed; null: it has not told of the entry. */
  readonly confirmed: Telling | null
}

/**
 * How the relay learnt of an entry: which door told of it first, and when the other one did. Unlike everything else about an entry this
 * depends on the order of arrival, by its nature. Nothing that arrives later changes it: a sighting keeps when it was first learnt of over
 * repeated polls and joins. Only where more sightings show that two entries are one, or one is two, are their learnings those of the
 * sightings that they then consist of.
 */
export function learningOf({ members }: Pick<Entry, 'members'>): Learning {
  const first = members.reduce(earlier)
  const { source } = first.sighting
  const others = members.filter(({ sighting }) => sighting.source !== source)
  return { first: tellingOf(first), confirmed: others.length === 0 ? null : tellingOf(others.reduce(earlier)) }
}

/** By sequence: every sighting has one, and a clock may be put back. */
function earlier(a: KeptSighting, b: KeptSighting): KeptSighting {
  return b.sequence < a.sequence ? b : a
}

function tellingOf({ sighting, learntAtMs }: KeptSighting): Telling {
  return { door: sighting.source, atMs: learntAtMs }
}
