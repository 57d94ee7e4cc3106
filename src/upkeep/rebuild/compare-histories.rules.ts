import type { Entry } from '../../core/domain/history/history.ts'
import type { AnswerSource } from '../../core/domain/history/pull-response.ts'

export const HISTORY_CHANGES = ['entry', 'update', 'united', 'split', 'removed', 'parcel'] as const

/**
 * How a stored history differs from the derived one. `entry`: the stored history lacks an entry. `update`: it shows an entry differently.
 * `united`: several of its entries should be one. `split`: one of its entries should be several. `removed`: it has an entry without any
 * evidence. `parcel`: the order of entries, or a value of the whole parcel, differs.
 */
export type HistoryChangeKind = (typeof HISTORY_CHANGES)[number]

export interface HistoryChange {
  readonly kind: HistoryChangeKind
  /** The derived entry; for `removed`, the stored entry. Null: the change concerns the whole parcel. */
  readonly entry: Entry | null
  /** The names of the members that differ; empty unless `kind` is `update` or `parcel`. */
  readonly members: readonly string[]
}

export interface ServedParcel extends AnswerSource {
  readonly identifiers: readonly string[]
}

/** Compares the stored history (`before`) with the derived one. Sightings with equal sequences are the same, even if their content differs. */
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
  // If entries have changed, a different order alone is not reported, because it may follow from their changes.
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

function partsOf({ status, detailedStatus, eventTimestamp, location, displayToConsumer, texts, extra }: Entry) {
  const sorted = Object.entries(texts).sort(([a], [b]) => (a < b ? -1 : 1))
  return { status, detailedStatus, eventTimestamp, location, displayToConsumer, texts: sorted, extra }
}

/** Returns the parts of an answer other than the content of its entries. */
function wholeOf({ entries, identifiers, trackingIds, distributionType, extra }: ServedParcel) {
  return { order: entries.map(({ sequence }) => sequence), identifiers, trackingIds, distributionType, extra }
}

function differing<Parts extends object>(before: Parts, after: Parts): readonly string[] {
  const now = new Map<string, unknown>(Object.entries(after))
  return Object.entries(before)
    .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(now.get(name)))
    .map(([name]) => name)
}
