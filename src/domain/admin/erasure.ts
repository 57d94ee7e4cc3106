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

/** `erased_before`: the identifier was erased earlier, and is erased again. `unknown`: no parcel has the identifier, and it was never erased. */
export type ErasureOutcome = 'erased' | 'erased_before' | 'unknown'

export interface ErasedIdentifier {
  readonly identifier: string
  readonly outcome: ErasureOutcome
  /** No other parcel ever gets this id. Null: the identifier had no parcel. */
  readonly parcelId: number | null
}

/** Whether the files of the store may still contain erased data. `pending`: they may, and the sentence `because` says why. */
export type StorageState = { readonly state: 'clean' } | { readonly state: 'pending'; readonly because: string }

/** The kinds of records that are not stored with a parcel but may name it, in the order in which they are searched. */
export const MENTION_SOURCES = ['quarantined', 'expired', 'dismissed', 'actions', 'events', 'jobs'] as const

export type MentionSource = (typeof MENTION_SOURCES)[number]

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

export const ERASED_WORD = '(erased)'

const WORD = /[A-Za-z0-9]+/g

/** Replaces identifiers in a text with `ERASED_WORD`. Null: the text contains none of them. */
export function scrubText(text: string, identifiers: ReadonlySet<string>): string | null {
  const scrubbed = text.replace(WORD, (word) => (identifiers.has(word.toUpperCase()) ? ERASED_WORD : word))
  return scrubbed === text ? null : scrubbed
}
