import { createMac, type Mac } from '../ingest/signature.ts'

/**
 * The stored secrets of an endpoint: its keys and the values of its fixed headers, each encrypted for this endpoint alone. While a key is
 * being replaced, each push has two signatures: one with the old key, in the usual header, and one with the new key, in the header
 * `x-service-hmac-sha256-next`. So receivers can verify the push with either key (CONTRACT, "Pushes to endpoints").
 */
export interface SealedKeys {
  readonly current: string
  /** When the current key was set; absent: not known. */
  readonly currentSinceMs?: number
  /** The key that replaces the current one at `fromMs`; null: no key is being replaced. All times are epoch milliseconds. */
  readonly next: { readonly sealed: string; readonly fromMs: number } | null
  /** The values of the fixed headers, by lower-case name. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Where a config takes a secret from: the name of an environment variable, or the path of a file. */
export type SecretOrigin = { readonly env: string } | { readonly file: string }

/** How long both keys sign while a key is replaced: a day, as is common among senders of webhooks. */
const OVERLAP_MS = 24 * 60 * 60 * 1000

/** Returns the keys of an endpoint that has just one key and no fixed headers. `sinceMs`: when the key was set; absent: not known. */
export function onlyKey(sealed: string, sinceMs?: number): SealedKeys {
  return { current: sealed, ...(sinceMs === undefined ? {} : { currentSinceMs: sinceMs }), next: null }
}

function onlyNext(keys: SealedKeys, { sealed, fromMs }: NonNullable<SealedKeys['next']>): SealedKeys {
  return replaceKey(keys, sealed, fromMs - OVERLAP_MS)
}

/** Makes `sealed` the only key from now on. The fixed headers stay. */
export function replaceKey({ headers }: SealedKeys, sealed: string, sinceMs?: number): SealedKeys {
  return { ...onlyKey(sealed, sinceMs), ...(headers === undefined ? {} : { headers }) }
}

/** Sets the values of some fixed headers; null removes a header. */
export function changeHeaders({ headers: before, ...rest }: SealedKeys, change: Readonly<Record<string, string | null>>): SealedKeys {
  const kept = Object.entries({ ...before, ...change }).flatMap(([name, sealed]) => (sealed === null ? [] : [[name, sealed] as const]))
  return kept.length === 0 ? rest : { ...rest, headers: Object.fromEntries(kept) }
}

/** Applies the changes that are due at `nowMs`. Returns the same object if none is due. */
export function keysAt(keys: SealedKeys, nowMs: number): SealedKeys {
  return keys.next !== null && keys.next.fromMs <= nowMs ? onlyNext(keys, keys.next) : keys
}

/** Infinity: the keys do not change. */
export function keysChangeAtMs({ next }: SealedKeys): number {
  return next?.fromMs ?? Number.POSITIVE_INFINITY
}

/** Moves the changes of keys back by `byMs` after the clock was put back by as much. So both keys sign for as long as intended. */
export function shiftKeys({ next, ...current }: SealedKeys, byMs: number): SealedKeys {
  return { ...current, next: next === null ? null : { ...next, fromMs: next.fromMs - byMs } }
}

/** Begins to replace the current key. Drops an earlier replacement that is not finished. */
export function rotateKeys(keys: SealedKeys, sealed: string, nowMs: number): SealedKeys {
  return { ...keysAt(keys, nowMs), next: { sealed, fromMs: nowMs + OVERLAP_MS } }
}

/** Ends the time in which both keys sign: from now on, the new key signs alone. Returns null if no key is being replaced. */
export function endOverlap(keys: SealedKeys, nowMs: number): SealedKeys | null {
  const { next } = keysAt(keys, nowMs)
  return next === null ? null : onlyNext(keys, next)
}

/**
 * Returns the keys after a receiver accepted a delivery that was signed with `used`. If `used` is the next key, the receiver has switched
 * to it. Then the old key stops signing.
 */
export function keysAfterUse(keys: SealedKeys, used: string): SealedKeys {
  return keys.next?.sealed === used ? onlyNext(keys, keys.next) : keys
}

export function sealedTexts({ current, next, headers = {} }: SealedKeys): readonly string[] {
  return [current, next?.sealed, ...Object.values(headers)].filter((text) => text !== undefined)
}

/** Replaces encrypted texts. `replacements` maps old texts to new ones. Other texts stay. */
export function resealKeys({ current, next, headers, ...since }: SealedKeys, replacements: ReadonlyMap<string, string>): SealedKeys {
  const renewed = (text: string) => replacements.get(text) ?? text
  return {
    ...since,
    current: renewed(current),
    next: next === null ? null : { ...next, sealed: renewed(next.sealed) },
    ...(headers === undefined
      ? {}
      : { headers: Object.fromEntries(Object.entries(headers).map(([name, sealed]) => [name, renewed(sealed)])) }),
  }
}

/** Endpoints whose keys cannot be decrypted. The relay sends them nothing until their keys can be decrypted again. */
export interface LostKeys {
  /** The file or setting with the encryption key, which an operator must restore. */
  readonly where: string
  readonly endpoints: number
}

/** Headers that an endpoint gets in addition to the relay's own, by lower-case name. Their values may be credentials. */
export type FixedHeaders = Readonly<Record<string, string>>

export const FIXED_HEADERS_MAX = 20
const VALUE_LENGTH_MAX = 4096

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/
const VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/

/** Headers about a single connection (RFC 9110, 7.6.1), and headers with which an HTTP client controls a single request. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
/** A header whose name begins with one of these is set by the relay itself, or describes the body. */
const RESERVED = ['content-', 'x-service-', 'webhook-', 'relay-'] as const

/** Says why a fixed header must not have this name. The text continues a sentence that begins with the name. Null: the name is allowed. */
export function fixedHeaderProblem(name: string, trustedHeader: string | null): string | null {
  const lower = name.toLowerCase()
  if (!NAME.test(name)) return 'is not the name of a header: it has letters, digits and hyphens, at most 100'
  if (OF_THE_CONNECTION.has(lower)) return 'is about the connection, so an endpoint cannot set it'
  const reserved = RESERVED.find((beginning) => lower.startsWith(beginning))
  if (reserved !== undefined) return `begins with ${reserved}, which only the relay sets`
  if (lower === trustedHeader?.toLowerCase()) return 'names a person to the portal (portal.trustedHeader), so nothing else may send it'
  return null
}

/** Says what is wrong with the value of a fixed header. The text does not repeat the value. Null: nothing is wrong. */
export function fixedValueProblem(value: string): string | null {
  if (value.length > VALUE_LENGTH_MAX) return `is longer than ${VALUE_LENGTH_MAX} characters`
  return VALUE.test(value) ? null : 'must be printable ASCII text without white space at its ends'
}

/** Makes the names of headers lower-case, because the case of a header has no meaning. Returns null if a name occurs twice. */
export function lowerCaseNames<Value>(headers: Readonly<Record<string, Value>>): Readonly<Record<string, Value>> | null {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
  return new Set(lower.map(([name]) => name)).size === lower.length ? Object.fromEntries(lower) : null
}

/** Returns headers with a mask in place of each value, because the values are secrets. */
export function maskedHeaders(names: readonly string[]): FixedHeaders {
  return Object.fromEntries(names.map((name) => [name, MASK]))
}

const MASK = '[redacted]'

const SIGNED = 'parcel-relay key fingerprint'
const HEX_DIGITS = 8

/**
 * Returns a short fingerprint of a shared key, such as `9f2c41d0`, so that people can compare keys without showing them. It is the beginning
 * of a signature with the key. So it reveals less about a weak key than any signed push does, and people can compute it with `openssl` too.
 */
export function fingerprintKey(key: string): string {
  return signedBy(key, SIGNED)
}

/** Returns a fingerprint of a key and the values of fixed headers. The relay stores it, to notice at its next start that one of them has changed. */
export function fingerprintSecrets(key: string, headers: FixedHeaders): string {
  const sorted = Object.entries(headers).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return signedBy(key, `${SIGNED} and headers ${JSON.stringify(sorted)}`)
}

function signedBy(key: string, text: string): string {
  const signature = createMac(Buffer.from(key, 'utf8'))(text)
  return Buffer.from(signature, 'base64').toString('hex').slice(0, HEX_DIGITS)
}

const PREFIX = 'whsec_'
/** Base64 with or without `=` at its end. The libraries of Standard Webhooks decode both. */
const BASE64 = /^[A-Za-z0-9+/]{2,}={0,2}$/
const LENGTH_MIN = 4
/** The lengths of a key that the specification allows, in bytes. */
const BYTES = { min: 24, max: 64 }

/** States the rule that `isStandardKey` checks, as the rest of a sentence that begins with the name of a key. */
export const STANDARD_KEY_RULE =
  'must be Base64, with or without whsec_ before it, because the libraries of Standard Webhooks refuse any other key: make one with `parcel-relay generate-key`'

/** Whether the libraries of Standard Webhooks accept a text as a key. They remove `whsec_` from its start and decode the rest as Base64. */
export function isStandardKey(key: string): boolean {
  return decode(key) !== null
}

/**
 * Returns the keys that a receiver may derive from the text of a key under the Standard Webhooks specification. The text after `whsec_` is
 * Base64. A text without `whsec_` that is Base64 of 24 to 64 bytes gives two keys, because receivers may decode the text or use its own
 * bytes.
 */
export function standardReadings(key: string): readonly Mac[] {
  const isPrefixed = key.startsWith(PREFIX)
  const decoded = decode(key)
  if (isPrefixed && decoded !== null) return [createMac(decoded)]
  const mayBeBase64 = decoded !== null && decoded.length >= BYTES.min && decoded.length <= BYTES.max
  return [...(mayBeBase64 ? [decoded] : []), Buffer.from(key, 'utf8')].map((bytes) => createMac(bytes))
}

/** Null: the text is not Base64, or has excess bits at its end. */
function decode(key: string): Buffer | null {
  const text = key.startsWith(PREFIX) ? key.slice(PREFIX.length) : key
  if (text.length < LENGTH_MIN || !BASE64.test(text)) return null
  const decoded = Buffer.from(text, 'base64')
  const unpadded = (base64: string) => base64.replace(/=+$/, '')
  return unpadded(decoded.toString('base64')) === unpadded(text) ? decoded : null
}
