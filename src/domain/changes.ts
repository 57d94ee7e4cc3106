import type { Entry } from './history.ts'
import { sightingId } from './sightings.ts'

/** What an observation changed about one entry; `entry` is how it stands now (CONTRACT, the feed). */
export interface EntryChange {
  /** `entry`: new. `update`: served otherwise than before, or known by another sequence. `united`: was two or more. `split`: was part of another. */
  readonly kind: 'entry' | 'update' | 'united' | 'split'
  readonly entry: Entry
}

/** What changed between two derivations of the same groups, the later one holding every sighting of the earlier. */
export function diffEntries(before: readonly Entry[], after: readonly Entry[]): readonly EntryChange[] {
  const formerOf = new Map(before.flatMap((entry) => entry.members.map((kept) => [sightingId(kept), entry] as const)))
  const heirs = new Set<Entry>()
  return after.flatMap((entry): EntryChange[] => {
    const formers = new Set(entry.members.flatMap((kept) => formerOf.get(sightingId(kept)) ?? []))
    const [former] = formers
    if (former === undefined) return [{ kind: 'entry', entry }]
    if (formers.size > 1) return [{ kind: 'united', entry }]
    if (heirs.has(former)) return [{ kind: 'split', entry }]
    heirs.add(former)
    return sameValue(former, entry) && former.sequence === entry.sequence ? [] : [{ kind: 'update', entry }]
  })
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
