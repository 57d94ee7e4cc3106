/** How many rows of each kind an erasure has removed. `mentions`: records that named the parcel, and now name nothing in its place. */
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

/** The sum of two counts. */
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

/** An endpoint, by its id and its name. */
export interface NamedEndpoint {
  readonly id: string
  readonly name: string
}

/** `erased_before`: it was erased earlier, and is again. `unknown`: no parcel has it, and it was never erased. */
export type ErasureOutcome = 'erased' | 'erased_before' | 'unknown'

/** What became of one identifier that was to be erased. */
export interface ErasedIdentifier {
  readonly identifier: string
  readonly outcome: ErasureOutcome
  /** The id of its parcel, which no other parcel gets; null: it had none. */
  readonly parcelId: number | null
}

/** Whether the files of the store still hold what was erased. `pending`: they may; `because` says why, as a sentence. */
export type StorageState = { readonly state: 'clean' } | { readonly state: 'pending'; readonly because: string }

/** The records besides a parcel's own that may name it, in the order in which they are searched. */
export const MENTION_SOURCES = ['quarantined', 'expired', 'dismissed', 'actions', 'events', 'jobs'] as const

export type MentionSource = (typeof MENTION_SOURCES)[number]

/** Where a search continues: after this row of a source. */
export interface MentionPlace {
  readonly source: MentionSource
  readonly after: number
}

export const FIRST_MENTION: MentionPlace = { source: MENTION_SOURCES[0], after: 0 }

/** The place after a page of a source. `last`: the last row of the page; null: the source has no more. Null: nothing is left to search. */
export function placeAfter({ source }: MentionPlace, last: number | null): MentionPlace | null {
  if (last !== null) return { source, after: last }
  const next = MENTION_SOURCES[MENTION_SOURCES.indexOf(source) + 1]
  return next === undefined ? null : { source: next, after: 0 }
}

/** Stands where a record named what was erased. */
export const ERASED_WORD = '(erased)'

const WORD = /[A-Za-z0-9]+/g

/** Takes identifiers out of a text. Null: it names none of them. */
export function scrubText(text: string, identifiers: ReadonlySet<string>): string | null {
  const scrubbed = text.replace(WORD, (word) => (identifiers.has(word.toUpperCase()) ? ERASED_WORD : word))
  return scrubbed === text ? null : scrubbed
}
