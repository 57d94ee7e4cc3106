import { entityTag } from '../../domain/digest.ts'
import { AppError } from '../../domain/errors.ts'
import type { ParcelView } from '../../domain/history/parcel-state.ts'
import { encodeAll, encodeLatest } from '../../domain/history/pull-response.ts'
import { parseIdentifier } from '../../domain/identifiers.ts'
import { languagePreference, parseLanguageTag } from '../../domain/languages.ts'
import type { CachedAnswer } from './ports.ts'

/** Which of the carrier's two questions: the newest entry, or the history. */
export type QuestionKind = 'latest' | 'all'

/** An app's question as the edge hands it over. */
export interface Question {
  /** Who asks: the app's username. */
  readonly app: string
  /** The identifier as the path names it, percent-decoded once. */
  readonly identifier: string
  /** The `language` parameter: undefined when there is none; anything but one string is a mistake. */
  readonly language: unknown
  readonly kind: QuestionKind
}

/** A question that was understood. */
export interface ParsedQuestion {
  readonly app: string
  readonly identifier: string
  /** Null: none asked, so the first configured one is wanted. */
  readonly language: string | null
  readonly kind: QuestionKind
}

/** Where an answer came from: the store; the carrier, just now; the store, because the carrier could not be asked. */
export type Freshness = 'hit' | 'fetched' | 'refreshed' | 'stale'

/** An answer, ready to send. */
export interface Served {
  readonly body: Buffer
  /** Strong, quotes included. */
  readonly etag: string
  /** Whole seconds since the carrier was last heard about the parcel; null: never. */
  readonly ageSeconds: number | null
  readonly contentLanguage: string
  /** RFC 9211. */
  readonly cacheStatus: string
}

/**
 * `hit`: from the store. `fwd=miss; stored`: the carrier was asked, as the relay lacked the parcel or the language. `fwd=stale; stored`: asked,
 * as what the relay had was too old. `hit; detail=stale`: the carrier should have been asked and could not be.
 */
const CACHE_STATUS: Readonly<Record<Freshness, string>> = {
  hit: 'parcel-relay; hit',
  fetched: 'parcel-relay; fwd=miss; stored',
  refreshed: 'parcel-relay; fwd=stale; stored',
  stale: 'parcel-relay; hit; detail=stale',
}

/** Blanks around an identifier are forgiven (DOMAIN 1.1), line breaks and other invisible characters are not. */
const PRINTABLE = /^[ -~]*$/

/** Reads a question, before the store, the carrier or a log sees any of it. Throws `bad_tracking_number` and `bad_language` (DOMAIN 1.1, 4.1). */
export function parseQuestion({ app, identifier, language, kind }: Question): ParsedQuestion {
  const folded = PRINTABLE.test(identifier) ? parseIdentifier(identifier) : null
  if (folded === null) throw new AppError('bad_tracking_number', 'A tracking number has 4 to 40 letters and digits.')
  const tag = language === undefined ? null : parseLanguageTag(language)
  if (language !== undefined && tag === null)
    throw new AppError('bad_language', 'language must be given at most once, as a tag such as "en".')
  return { app, identifier: folded, language: tag, kind }
}

/** Encodes the answer to a question from what is known; null: `latest` of a parcel without entries (DOMAIN 3.3). */
export function encodeAnswer(view: ParcelView, { language, kind }: ParsedQuestion, configured: readonly string[]): CachedAnswer | null {
  const preference = languagePreference(language, configured)
  const encoded = kind === 'all' ? encodeAll(view, preference) : encodeLatest(view, preference)
  if (encoded === null) return null
  const contentLanguage = encoded.contentLanguages.join(', ')
  return {
    parcelId: view.parcelId,
    body: ownBytes(encoded.body),
    etag: entityTag(encoded.body, contentLanguage),
    contentLanguage,
    lastSeenAtMs: view.lastSeenAtMs,
  }
}

/** In memory of its own: a small piece of what the platform shares out would keep all of it, for as long as the answer is kept. */
function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}

/** The answer as it is sent at a given time. */
export function presentServed(answer: CachedAnswer, freshness: Freshness, nowMs: number): Served {
  const { body, etag, contentLanguage, lastSeenAtMs } = answer
  const ageSeconds = lastSeenAtMs === null ? null : Math.max(0, Math.floor((nowMs - lastSeenAtMs) / 1000))
  return { body, etag, ageSeconds, contentLanguage, cacheStatus: CACHE_STATUS[freshness] }
}
