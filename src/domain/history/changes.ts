import type { Entry } from './history.ts'
import { sightingId } from './sightings.ts'

/** What an observation changed about one entry; `entry` is how it stands now (CONTRACT, the feed). */
export interface EntryChange {
  /**
   * `entry`: new. `update`: served otherwise than before. `united`: was two or more, or parts of them. `split`: was part of another, and what
   * that other was known by is not in it.
   */
  readonly kind: 'entry' | 'update' | 'united' | 'split'
  readonly entry: Entry
}

/** What changed between two derivations of the same groups, the later one holding every sighting of the earlier. */
export function diffEntries(before: readonly Entry[], after: readonly Entry[]): readonly EntryChange[] {
  if (before.length === 0) return after.map((entry) => ({ kind: 'entry', entry }))
  const formerOf = new Map(before.flatMap((entry) => entry.members.map((kept) => [sightingId(kept), entry] as const)))
  return after.flatMap((entry): EntryChange[] => {
    const formers = new Set(entry.members.flatMap((kept) => formerOf.get(sightingId(kept)) ?? []))
    const [former] = formers
    if (former === undefined) return [{ kind: 'entry', entry }]
    if (formers.size > 1) return [{ kind: 'united', entry }]
    // Whoever was told of the former knows it by its first sighting: what holds that one goes on, anything else is new to them.
    if (!entry.members.some((kept) => kept.sequence === former.sequence)) return [{ kind: 'split', entry }]
    return sameMembers(former, entry) || sameValue(former, entry) ? [] : [{ kind: 'update', entry }]
  })
}

/** An entry is a function of its members: nothing else need be looked at. */
function sameMembers(a: Entry, b: Entry): boolean {
  return a.members.length === b.members.length && a.members.every((kept, at) => kept === b.members[at])
}

function sameValue(a: Entry, b: Entry): boolean {
  return servedValue(a) === servedValue(b)
}

/** Everything of an entry that an answer can show. */
function servedValue(entry: Entry): string {
  const { eventTimestamp, location, displayToConsumer, extra } = entry
  const texts = Object.entries(entry.texts).sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify([eventTimestamp, location, displayToConsumer, texts, extra])
}
