import { AppError } from '../../domain/errors.ts'
import type { ParcelView } from '../../domain/history/parcel-state.ts'
import { encodeAll, encodeLatest } from '../../domain/history/pull-response.ts'
import { describeBadIdentifier, parseIdentifier } from '../../domain/identifiers.ts'
import { languagePreference, parseLanguageTag } from '../../domain/languages.ts'
import { entityTag } from '../../domain/text.ts'
import type { CachedAnswer } from '../ports.ts'

/** Which of the carrier's two requests an app makes. `latest`: the newest entry. `all`: the whole history. */
export type QuestionKind = 'latest' | 'all'

/** An app's question, not parsed yet. */
export interface Question {
  /** The username of the app. */
  readonly app: string
  /** The identifier from the path, percent-decoded once. */
  readonly identifier: string
  /** The `language` parameter; undefined: none was given. Any value that is not a single string is invalid. */
  readonly language: unknown
  readonly kind: QuestionKind
}

export interface ParsedQuestion {
  readonly app: string
  readonly identifier: string
  /** Null: no language was given, so the first configured language applies. */
  readonly language: string | null
  readonly kind: QuestionKind
}

/**
 * Where an answer comes from. `hit`: the store. `fetched`: the carrier, because something was missing. `refreshed`: the carrier, because
 * the stored answer was too old. `stale`: the store, because the carrier could not be asked.
 */
export type Freshness = 'hit' | 'fetched' | 'refreshed' | 'stale'

export interface Served {
  readonly body: Buffer
  /** A strong tag, with its quotes. */
  readonly etag: string
  /** Whole seconds since a push or poll last reported on the parcel; null: never. */
  readonly ageSeconds: number | null
  readonly contentLanguage: string
  /** The value of the header `Cache-Status` (RFC 9211). */
  readonly cacheStatus: string
}

const CACHE_STATUS: Readonly<Record<Freshness, string>> = {
  hit: 'parcel-relay; hit',
  fetched: 'parcel-relay; fwd=miss; stored',
  refreshed: 'parcel-relay; fwd=stale; stored',
  stale: 'parcel-relay; hit; detail=stale',
}

/** Spaces around an identifier are accepted (DOMAIN 1.1). Line breaks and other invisible characters are not. */
const PRINTABLE = /^[ -~]*$/

/** Throws `bad_tracking_number` and `bad_language` (DOMAIN 1.1, 4.1). */
export function parseQuestion({ app, identifier, language, kind }: Question): ParsedQuestion {
  const folded = PRINTABLE.test(identifier) ? parseIdentifier(identifier) : null
  if (folded === null) throw new AppError('bad_tracking_number', describeBadIdentifier(identifier))
  const tag = language === undefined ? null : parseLanguageTag(language)
  if (language !== undefined && tag === null)
    throw new AppError('bad_language', 'language must be given at most once, as a tag such as "en".')
  return { app, identifier: folded, language: tag, kind }
}

/** Encodes the answer to a question; null: `latest` of a parcel without entries (DOMAIN 3.3). */
export function encodeAnswer(view: ParcelView, { language, kind }: ParsedQuestion, configured: readonly string[]): CachedAnswer | null {
  const preference = languagePreference(language, configured)
  const encoded = kind === 'all' ? encodeAll(view, preference) : encodeLatest(view, preference)
  if (encoded === null) return null
  const contentLanguage = encoded.contentLanguages.join(', ')
  return {
    parcelId: view.parcelId,
    version: view.version,
    body: ownBytes(encoded.body),
    etag: entityTag(encoded.body, contentLanguage),
    contentLanguage,
    lastSeenAtMs: view.lastSeenAtMs,
  }
}

/** Copies a text into a buffer of its own. A slice of Node's buffer pool would keep the whole pool in memory while the answer is cached. */
function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}

export function presentServed({ body, etag, contentLanguage, lastSeenAtMs }: CachedAnswer, freshness: Freshness, nowMs: number): Served {
  const ageSeconds = lastSeenAtMs === null ? null : Math.max(0, Math.floor((nowMs - lastSeenAtMs) / 1000))
  return { body, etag, ageSeconds, contentLanguage, cacheStatus: CACHE_STATUS[freshness] }
}
