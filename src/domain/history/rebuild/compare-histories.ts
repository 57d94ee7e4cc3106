import type { Entry } from '../history.ts'
import type { AnswerSource } from '../pull-response.ts'

export const HISTORY_CHANGES = ['entry', 'update', 'united', 'split', 'removed', 'parcel'] as const

/**
 * How a history differs from the one that is derived. `entry`: it lacks an entry. `update`: an entry is shown differently. `united`,
 * `split`: entries are one, or one is several. `removed`: it has an entry that nothing shows. `parcel`: the order, or a value of the parcel
 * as a whole, differs.
 */
export type HistoryChangeKind = (typeof HISTORY_CHANGES)[number]

export interface HistoryChange {
  readonly kind: HistoryChangeKind
  /** The entry, as it is derived; `removed`: as it was. Null: the change is of the parcel as a whole. */
  readonly entry: Entry | null
  /** The members that differ; empty: the kind says it all. */
  readonly members: readonly string[]
}

/** Everything that is served about a parcel. */
export interface ServedParcel extends AnswerSource {
  /** All its identifiers. */
  readonly identifiers: readonly string[]
}

/** Compares the history that is served with the derived one. Sightings are the same if their sequences are: their content may differ. */
export function compareHistories(before: ServedParcel, after: ServedParcel): readonly HistoryChange[] {
  const changes: HistoryChange[] = []
  const formerOf = new Map(before.entries.flatMap((entry) => entry.members.map(({ sequence }) => [sequence, entry] as const)))
  const continued = new Set<Entry>()
  for (const entry of after.entries.toSorted((a, b) => a.sequence - b.sequence)) {
    const formers = new Set(entry.members.flatMap(({ sequence }) => formerOf.get(sequence) ?? []))
    for (const former of formers) continued.add(former)
    const change = changeOf(entry, [...formers])
    if (change !== null) changes.push(change)
  }
  for (const entry of before.entries) if (!continued.has(entry)) changes.push({ kind: 'removed', entry, members: [] })
  const members = differing(wholeOf(before), wholeOf(after))
  // Changes of entries change the order by themselves.
  if (members.some((name) => name !== 'order' || changes.length === 0)) changes.push({ kind: 'parcel', entry: null, members })
  return changes
}

function changeOf(entry: Entry, formers: readonly Entry[]): HistoryChange | null {
  const [former, ...others] = formers
  if (former === entry) return null
  if (former === undefined) return { kind: 'entry', entry, members: [] }
  if (others.length > 0) return { kind: 'united', entry, members: [] }
  if (!entry.members.some(({ sequence }) => sequence === former.sequence)) return { kind: 'split', entry, members: [] }
  const members = differing(partsOf(former), partsOf(entry))
  return members.length === 0 ? null : { kind: 'update', entry, members }
}

/** The parts of an entry that answers show. */
function partsOf({ status, detailedStatus, eventTimestamp, location, displayToConsumer, texts, extra }: Entry) {
  const sorted = Object.entries(texts).sort(([a], [b]) => (a < b ? -1 : 1))
  return { status, detailedStatus, eventTimestamp, location, displayToConsumer, texts: sorted, extra }
}

/** The parts of an answer that are not its entries. */
function wholeOf({ entries, identifiers, trackingIds, distributionType, extra }: ServedParcel) {
  return { order: entries.map(({ sequence }) => sequence), identifiers, trackingIds, distributionType, extra }
}

function differing<Parts extends object>(before: Parts, after: Parts): readonly string[] {
  const now = new Map<string, unknown>(Object.entries(after))
  return Object.entries(before)
    .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(now.get(name)))
    .map(([name]) => name)
}
