import type { Found } from '../../console/problems/concern.ts'
import { ERASED_WORD, type MarkedTombstone, type StorageState } from '../../core/domain/history/erased.ts'
import { isObject, isRawNumber, parseKeepingNumbers } from '../../core/domain/json-body.ts'
import { type NameSearch, type ReplacedNames, replaceNames } from '../../core/domain/names-in-text.ts'

/** How many rows of each kind an erasure has removed. `mentions`: records that stay, but no longer name the parcel. */
export interface ErasedCounts {
  readonly parcels: number
  readonly identifiers: number
  readonly sightings: number
  readonly answers: number
  readonly pushes: number
  readonly deliveries: number
  readonly attempts: number
  readonly texts: number
  readonly mentions: number
}

export const NOTHING_ERASED: ErasedCounts = {
  parcels: 0,
  identifiers: 0,
  sightings: 0,
  answers: 0,
  pushes: 0,
  deliveries: 0,
  attempts: 0,
  texts: 0,
  mentions: 0,
}

export function addErased(one: ErasedCounts, other: Partial<ErasedCounts>): ErasedCounts {
  return {
    parcels: one.parcels + (other.parcels ?? 0),
    identifiers: one.identifiers + (other.identifiers ?? 0),
    sightings: one.sightings + (other.sightings ?? 0),
    answers: one.answers + (other.answers ?? 0),
    pushes: one.pushes + (other.pushes ?? 0),
    deliveries: one.deliveries + (other.deliveries ?? 0),
    attempts: one.attempts + (other.attempts ?? 0),
    texts: one.texts + (other.texts ?? 0),
    mentions: one.mentions + (other.mentions ?? 0),
  }
}

export interface NamedEndpoint {
  readonly id: string
  readonly name: string
}

/**
 * `erased_before`: the identifier was erased earlier, and is erased again. `unknown`: no parcel has the identifier, no stored push names it, and it
 * was never erased. So nothing was changed.
 */
export type ErasureOutcome = 'erased' | 'erased_before' | 'unknown'

export interface ErasedIdentifier {
  readonly identifier: string
  readonly outcome: ErasureOutcome
  /** No other parcel ever gets this id. Null: the identifier had no parcel. */
  readonly parcelId: number | null
  /** When it was erased, epoch milliseconds; null: it is unknown. */
  readonly erasedAtMs: number | null
  /** The marks of the tombstones: of the identifier, then of the other identifiers of a parcel that was erased with it, at most `MARKS_MAX`. */
  readonly marks: readonly string[]
}

export const MARKS_MAX = 100

/**
 * What a store knows of erased parcels, to be compared with its backups. Times in it are only compared for being equal, so no clock that was
 * wrong makes a backup look as if it could not hold them.
 */
export interface ErasureTrace {
  /** Of the identifiers that were named. A backup with the same tombstones was made after the parcels were erased. */
  readonly tombstones: readonly MarkedTombstone[]
  /** See `ERASURE_LINEAGE`. */
  readonly lineage: string
  /** When the store was last restored, epoch milliseconds; null: never. Ids of an earlier backup may be those of other parcels. */
  readonly restoredAtMs: number | null
  /** The lowest id of the parcels. A backup that has given only lower ones was made before they were known. 0: that is not known. */
  readonly firstParcelId: number
  /** The identifiers of the parcels. The store may have removed by age what a backup still holds under them. */
  readonly names: ReadonlySet<string>
}

/**
 * The setting with a random text, which changes when records are found to name parcels that had been erased before. Only backups with the same
 * text can be without such records. `UNCLEAR`: records that nobody could read may name such a parcel. Absent or empty: not known.
 */
export const ERASURE_LINEAGE = 'erasure-lineage'
export const UNCLEAR = 'unclear'

/** A list with more identifiers is not compared with the backups: all of them count as holding the parcels. */
export const TRACED_MAX = 10_000

/** The kinds of records that are not stored with a parcel but may name it, in the order in which they are searched. */
export const MENTION_SOURCES = ['quarantined', 'expired', 'dismissed', 'actions', 'events', 'jobs', 'refusals'] as const

export type MentionSource = (typeof MENTION_SOURCES)[number]
export type PushSource = 'quarantined' | 'expired' | 'dismissed'

export function isOfPushes(source: MentionSource): source is PushSource {
  return source === 'quarantined' || source === 'expired' || source === 'dismissed'
}

/** Where a search for mentions continues: after row `after` of the records of kind `source`. */
export interface MentionPlace {
  readonly source: MentionSource
  readonly after: number
}

export const FIRST_MENTION: MentionPlace = { source: MENTION_SOURCES[0], after: 0 }

/**
 * Returns where a search continues after a page; null: everything was searched. `last`: the last row of the page; null: this kind has no more rows.
 */
export function placeAfter({ source }: MentionPlace, last: number | null): MentionPlace | null {
  if (last !== null) return { source, after: last }
  const next = MENTION_SOURCES[MENTION_SOURCES.indexOf(source) + 1]
  return next === undefined ? null : { source: next, after: 0 }
}

/** The name of a record with the headers of a refused push. */
export const REFUSED_HEADERS = 'refused_headers'

/**
 * The members of stored records that hold identifiers or free text, by the name of the record: an order of operators or an event. All other
 * members hold numbers, instants, enumerations, or the names of people, endpoints, settings and backups, which an erasure never changes.
 */
const FREE_MEMBERS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'deliveries.replayed': [['parcel']],
  'config.reloaded': [['problems']],
  endpoint_failing: [['failure', 'answer']],
  reloaded: [['problems']],
  reload_failed: [['problems']],
  backup_failed: [['reason']],
  job_ended: [['failure']],
  [REFUSED_HEADERS]: [['content-type'], ['user-agent'], ['via'], ['x-forwarded-for'], ['x-request-id'], ['traceparent']],
}

/** Replaces identifiers in a text with `ERASED_WORD`. Null: the text contains none of them. */
export function eraseInText(text: string, search: NameSearch): ReplacedNames | null {
  return replaceNames(text, search, ERASED_WORD)
}

/**
 * Replaces identifiers in the free members of a record, which is stored as JSON. Numbers stay as they were written. Null: there are none.
 * `unreadable`: the text is not a JSON object.
 */
export function eraseInRecord(record: string, json: string, search: NameSearch): ReplacedNames | 'unreadable' | null {
  const value = parseRecord(json)
  if (value === null) return 'unreadable'
  const found: ReplacedNames[] = []
  const erase = (text: string) => {
    const erased = eraseInText(text, search)
    if (erased !== null) found.push(erased)
    return erased?.text ?? text
  }
  const members = Object.hasOwn(FREE_MEMBERS, record) ? (FREE_MEMBERS[record] ?? []) : []
  const after = members.reduce<unknown>((known, path) => changeAt(known, path, erase), value)
  const isUnclear = found.some((erased) => erased.isUnclear)
  return found.length === 0 ? null : { text: JSON.stringify(after), names: found.flatMap(({ names }) => names), isUnclear }
}

function parseRecord(json: string): object | null {
  try {
    const value = parseKeepingNumbers(json)
    return isObject(value) && !isRawNumber(value) ? value : null
  } catch {
    return null
  }
}

function changeAt(value: unknown, [name, ...rest]: readonly string[], change: (text: string) => string): unknown {
  if (name === undefined) return changeAll(value, change)
  return isObject(value) && Object.hasOwn(value, name) ? { ...value, [name]: changeAt(value[name], rest, change) } : value
}

/** Changes all texts in a value, names of members included. */
function changeAll(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((one) => changeAll(one, change))
  if (!isObject(value) || isRawNumber(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [change(name), changeAll(one, change)]))
}

export function concernsOfStorage(storage: StorageState): readonly Found[] {
  if (storage.state === 'clean') return []
  return [
    {
      kind: 'erasure_pending',
      title: 'The store may still hold erased data',
      sinceMs: null,
      evidence: [storage.because],
      todo: ['Then look again: parcel-relay check.'],
    },
  ]
}
