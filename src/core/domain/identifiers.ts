import { AppError } from './errors.ts'

const FORM = /^[A-Z0-9]{4,40}$/
/** A text with more characters is refused unread. */
const TEXT_LENGTH_MAX = 200

/**
 * Parses a tracking number or tracking id: trims it, and makes ASCII letters upper-case. Null: the result is not 4 to 40 letters and digits
 * (DOMAIN 1.1).
 */
export function parseIdentifier(text: unknown): string | null {
  if (typeof text !== 'string' || text.length > TEXT_LENGTH_MAX) return null
  if (FORM.test(text)) return text
  const folded = text.trim().replace(/[a-z]/g, (letter) => letter.toUpperCase())
  return FORM.test(folded) ? folded : null
}

/** White space, all kinds of hyphens, and invisible characters. People copy them together with a number from a page or a label. */
const COPIED_ALONG = /[\s\p{Pd}\u2212\p{Cf}\u00ad]/gu

/** Tabs and breaks of lines separate numbers; people do not type them inside of one. */
const SEPARATES = /[\t\r\n\v\f\u0085\u2028\u2029]/
/** A part of this length is a number by itself: people write numbers in groups that are shorter. */
const GROUP_LENGTH_MAX = 8

/**
 * Parses an identifier that a person typed or copied into a list, a search or a command. Ignores spaces, hyphens and invisible characters (DOMAIN
 * 1.1). Null: what is left is not an identifier, or the text has several.
 */
export function parseTypedIdentifier(text: unknown): string | null {
  return typeof text === 'string' && text.length <= TEXT_LENGTH_MAX && !isSeveral(text) ? parseIdentifier(asTyped(text)) : null
}

/** Drops what people type or copy along with an identifier, or with its beginning. */
export function asTyped(text: string): string {
  return text.replace(COPIED_ALONG, '')
}

/** Whether a text has several identifiers. Without their separators they would be taken for one. */
export function isSeveral(text: string): boolean {
  const trimmed = text.trim()
  return SEPARATES.test(trimmed) || trimmed.split(/\s+/).filter((part) => asTyped(part).length > GROUP_LENGTH_MAX).length > 1
}

/** Says why a text is not an identifier. The message does not repeat the text: it names at most one of its characters, by its code. */
export function describeBadIdentifier(text: string): string {
  const rule = 'An identifier is 4 to 40 letters and digits.'
  const characters = Array.from(text.slice(0, TEXT_LENGTH_MAX).trim())
  const at = characters.findIndex((character) => !/[A-Za-z0-9]/.test(character))
  const bad = characters[at]
  return bad === undefined ? `${rule} This has ${characters.length}.` : `${rule} Character ${at + 1} of this is ${nameOf(bad)}.`
}

function nameOf(character: string): string {
  if (character === ' ') return 'a space'
  if (character === '-') return 'a hyphen'
  const code = `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
  return /[\s\p{Cf}\u00ad]/u.test(character) ? `${code}, which is invisible` : code
}

/** How long the relay waits before it asks the carrier again about an identifier that the carrier does not know (DOMAIN 6.3). */
const REFUSAL_HOLDS_MS = 24 * 60 * 60 * 1000

/** An identifier. `refusedAtMs`: when the carrier last answered that it does not know this identifier, epoch milliseconds; null: never. */
export interface Refusable {
  readonly refusedAtMs: number | null
}

/**
 * Returns the identifiers of a parcel about which the relay may ask the carrier now, in their order (DOMAIN 6.3). If the carrier knew none
 * of them when it was asked, but has reported on the parcel since, it may know them now. Then the relay may ask again at once (DOMAIN 6.1).
 *
 * @param heardAtMs When a push or poll last reported on the parcel, epoch milliseconds; null: never.
 */
export function pollableNow<Identifier extends Refusable>(
  identifiers: readonly Identifier[],
  heardAtMs: number | null,
  nowMs: number,
): readonly Identifier[] {
  const open = identifiers.filter(({ refusedAtMs }) => refusedAtMs === null || refusedAtMs + REFUSAL_HOLDS_MS <= nowMs)
  return open.length > 0 ? open : identifiers.filter(({ refusedAtMs }) => isHeardSince(refusedAtMs, heardAtMs))
}

/** Returns when the relay may next ask the carrier about a parcel, epoch milliseconds; `-Infinity`: now. Null: the parcel has no identifiers. */
export function pollableFromMs(identifiers: readonly Refusable[], heardAtMs: number | null): number | null {
  const from = identifiers.map(({ refusedAtMs }) =>
    refusedAtMs === null || isHeardSince(refusedAtMs, heardAtMs) ? Number.NEGATIVE_INFINITY : refusedAtMs + REFUSAL_HOLDS_MS,
  )
  return from.length === 0 ? null : Math.min(...from)
}

function isHeardSince(refusedAtMs: number | null, heardAtMs: number | null): boolean {
  return refusedAtMs !== null && heardAtMs !== null && refusedAtMs <= heardAtMs
}

/** How many identifiers one push may have (DOMAIN 5.3). */
export const TRACKING_IDS_MAX = 100

/** Parses an identifier from the text of a path. Throws `bad_tracking_number`. */
export function readIdentifier(text: string): string {
  const identifier = parseIdentifier(text)
  if (identifier === null) throw new AppError('bad_tracking_number', describeBadIdentifier(text))
  return identifier
}
