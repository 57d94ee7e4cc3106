import { createHash, createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { NamedKey } from '../../core/domain/ingest/signature.ts'
import { isSignature } from '../../core/domain/ingest/signature.ts'
import { readJson } from '../../core/domain/json-body.ts'
import { type BodyVariant, bodyVariants } from './body-variants.rules.ts'
import { causeOf, EMPTY_KEY, type KeyVariant, keyVariants, type MismatchCause, plainKey } from './mismatch-causes.rules.ts'

export interface SuspectPush {
  /** Null: the body was not read, so only the header is examined. */
  readonly body: Uint8Array | null
  /** All values of the signature header. */
  readonly signatures: readonly string[]
  readonly webhookId: string | null
  readonly webhookTimestamp: string | null
  /** The keys for pushes. */
  readonly keys: readonly NamedKey[]
  /** The relay's keys for other purposes, which a sender may use by mistake. */
  readonly otherKeys: readonly NamedKey[]
}

export interface SearchBounds {
  readonly triesMax: number
  readonly hashedBytesMax: number
}

export interface Explanation {
  /** `valid`: the signature matches. `explained`: `causes` say why it does not match. `unexplained`: `causes` contains `unknown`. */
  readonly verdict: 'valid' | 'explained' | 'unexplained'
  /** The name of the key with which the sender signed; null: the key is unknown, or there was none. */
  readonly key: string | null
  readonly causes: readonly MismatchCause[]
  /** Whether the limits ended the search before all possibilities were tried. */
  readonly isCutShort: boolean
}

export function explainMismatch(push: SuspectPush, bounds: SearchBounds): Explanation {
  const search = searchMismatch(push, bounds)
  for (;;) {
    const step = search.next()
    if (step.done === true) return step.value
  }
}

/**
 * Finds out how a push was signed. Tries all usual mistakes in the signature, the key and the body. Mistakes in the key and the body together come
 * after single ones. Yields after each try, so that the caller can do other work. The result contains no key and no part of the body.
 */
export function* searchMismatch(push: SuspectPush, bounds: SearchBounds): Generator<undefined, Explanation> {
  const header = judgeHeader(push)
  if (header.readings.length === 0) return explainedBy(header.causes)
  if (push.body === null) return header.causes.length === 0 ? unexplained([causeOf('body_unread')]) : explainedBy(header.causes)
  const spent: Spent = { tries: 0, hashedBytes: 0, bounds }
  for (const attempt of attempts(push, push.body)) {
    if (isOver(spent)) return { ...unexplained([...header.causes, ...damageOf(push.body)]), isCutShort: true }
    const reading = header.readings.find((one) => fits(attempt, one, spent))
    if (reading !== undefined) return explained(header, attempt, reading)
    yield
  }
  if (push.body.length === 0) return explainedBy([causeOf('body_missing'), ...header.causes])
  return unexplained([...header.causes, ...damageOf(push.body)])
}

interface Spent {
  tries: number
  hashedBytes: number
  readonly bounds: SearchBounds
}

function isOver({ tries, hashedBytes, bounds }: Spent): boolean {
  return tries >= bounds.triesMax || hashedBytes >= bounds.hashedBytesMax
}

interface Header {
  readonly readings: readonly SignatureReading[]
  /** The mistakes that the header alone shows. */
  readonly causes: readonly MismatchCause[]
}

function judgeHeader({ signatures, keys, otherKeys }: SuspectPush): Header {
  const [first] = signatures
  if (first === undefined) return { readings: [], causes: [causeOf('signature_missing')] }
  const sent = [...keys, ...otherKeys].find(
    ({ key }) => key.length >= KEY_CHARS_MIN && signatures.some((value) => value.includes(key.trim())),
  )
  if (sent !== undefined) return { readings: [], causes: [causeOf('key_sent', sent.name)] }
  const repeated = signatures.length > 1 ? [causeOf('signature_repeated')] : []
  const readings = signatures.slice(0, VALUES_MAX).flatMap(readSignature)
  if (readings.length === 0) return { readings, causes: [...repeated, causeOf('signature_malformed')] }
  return { readings, causes: [...repeated, ...(signatures.some(isSignature) ? [] : (readings[0]?.causes ?? []))] }
}

const VALUES_MAX = 4
/** The header may contain a shorter key by chance, so only keys of this length are looked for. */
const KEY_CHARS_MIN = 8

/** A way in which the sender may have computed the signature. */
interface Attempt {
  readonly parts: readonly Uint8Array[]
  /** Null: a plain hash, without a key. */
  readonly key: PreparedKey | null
  readonly causes: readonly MismatchCause[]
}

interface PreparedKey extends KeyVariant {
  readonly secret: KeyObject
}

/** Likelier attempts come first, because the limits may end the search. */
function* attempts(push: SuspectPush, body: Uint8Array): Generator<Attempt, undefined> {
  const keys = push.keys.map(plainKey).map(prepared)
  const mistaken = [...push.keys.flatMap(keyVariants), EMPTY_KEY].map(prepared)
  const others = push.otherKeys.map(plainKey).map(asOther).map(prepared)
  const mistakenOthers = push.otherKeys.flatMap(keyVariants).map(asOther).map(prepared)
  const asSent: BodyVariant = { bytes: body, causes: [] }
  for (const key of [...keys, ...others, ...mistaken]) yield signed(asSent, key)
  yield* withTime(push, body, [...keys, ...mistaken])
  yield* withoutHmac(body, keys)
  for (const key of keys) yield swapped(body, key)
  for (const variant of bodyVariants(body)) for (const key of keys) yield signed(variant, key)
  for (const key of mistakenOthers) yield signed(asSent, key)
  for (const variant of bodyVariants(body)) for (const key of mistaken) yield signed(variant, key)
  for (const variant of bodyVariants(body)) for (const key of others) yield signed(variant, key)
}

function signed({ bytes, causes }: BodyVariant, key: PreparedKey): Attempt {
  return { parts: [bytes], key, causes: [...key.causes, ...causes] }
}

function swapped(body: Uint8Array, { name, bytes }: PreparedKey): Attempt {
  const causes = [causeOf('key_swapped')]
  return { parts: [bytes], key: prepared({ name, bytes: body, causes }), causes }
}

function prepared(key: KeyVariant): PreparedKey {
  return { ...key, secret: createSecretKey(key.bytes) }
}

function asOther(key: KeyVariant): KeyVariant {
  return { ...key, causes: [causeOf('other_key', key.name), ...key.causes] }
}

/** For schemes that sign a time or an id with the body: Standard Webhooks, and schemes with `t=` in the header. */
function* withTime(
  { webhookId, webhookTimestamp, signatures }: SuspectPush,
  body: Uint8Array,
  keys: readonly PreparedKey[],
): Generator<Attempt, undefined> {
  const times = signatures.flatMap(readSignature).flatMap(({ time }) => (time === null ? [] : [time]))
  const standard = webhookId === null || webhookTimestamp === null ? [] : [`${webhookId}.${webhookTimestamp}`]
  const stamped = webhookTimestamp === null ? [] : [webhookTimestamp]
  for (const prefix of [...standard, ...times, ...stamped].slice(0, PREFIXES_MAX))
    for (const key of keys) yield { parts: [Buffer.from(`${prefix}.`), body], key, causes: [...key.causes, causeOf('signed_with_time')] }
}

const PREFIXES_MAX = 4

function* withoutHmac(body: Uint8Array, keys: readonly PreparedKey[]): Generator<Attempt, undefined> {
  yield { parts: [body], key: null, causes: [causeOf('digest_without_key')] }
  for (const { bytes, name } of keys) {
    yield { parts: [bytes, body], key: null, causes: [causeOf('digest_with_key', name)] }
    yield { parts: [body, bytes], key: null, causes: [causeOf('digest_with_key', name)] }
  }
}

/** The length of a digest shows which of these algorithms was used. */
const ALGORITHMS = [
  { name: 'sha256', shown: 'HMAC-SHA256', bytes: 32 },
  { name: 'sha1', shown: 'HMAC-SHA1', bytes: 20 },
  { name: 'sha512', shown: 'HMAC-SHA512', bytes: 64 },
  { name: 'sha384', shown: 'HMAC-SHA384', bytes: 48 },
  { name: 'sha224', shown: 'HMAC-SHA224', bytes: 28 },
  { name: 'md5', shown: 'HMAC-MD5', bytes: 16 },
] as const

/** A digest of an unusual length counts as the beginning of an HMAC-SHA256. */
function algorithmOf({ digest }: SignatureReading) {
  return ALGORITHMS.find(({ bytes }) => bytes === digest.length) ?? ALGORITHMS[0]
}

function fits({ parts, key }: Attempt, reading: SignatureReading, spent: Spent): boolean {
  const { name } = algorithmOf(reading)
  const hash = key === null ? createHash(name) : createHmac(name, key.secret)
  spent.tries += 1
  for (const part of parts) {
    hash.update(part)
    spent.hashedBytes += part.length
  }
  const digest = hash.digest()
  const { length } = reading.digest
  return length <= digest.length && timingSafeEqual(digest.subarray(0, length), reading.digest)
}

function explained(header: Header, { key, causes }: Attempt, reading: SignatureReading): Explanation {
  const algorithm = algorithmOf(reading)
  const form = [
    ...reading.causes,
    ...(reading.digest.length < algorithm.bytes ? [causeOf('signature_truncated')] : []),
    ...(algorithm.name === 'sha256' || key === null ? [] : [causeOf('algorithm', algorithm.shown)]),
  ]
  const repeated = header.causes.filter(({ code }) => code === 'signature_repeated')
  const all = [...repeated, ...form, ...causes]
  const name = key === null || key.bytes.length === 0 ? null : key.name
  return { verdict: all.length === 0 ? 'valid' : 'explained', key: name, causes: all, isCutShort: false }
}

function explainedBy(causes: readonly MismatchCause[]): Explanation {
  return { verdict: 'explained', key: null, causes, isCutShort: false }
}

function unexplained(causes: readonly MismatchCause[]): Explanation {
  return { verdict: 'unexplained', key: null, causes: [...causes, causeOf('unknown')], isCutShort: false }
}

/** A body that begins like a JSON object but is not valid JSON was damaged on its way, because nobody signs such a body. */
function damageOf(body: Uint8Array): readonly MismatchCause[] {
  return body[0] === 0x7b && !readJson(body).ok ? [causeOf('body_incomplete')] : []
}

/** A digest, as read from a signature header. One header may be read as several digests. */
interface SignatureReading {
  readonly digest: Uint8Array
  /** How the header differs from strict Base64; empty: it is strict Base64. */
  readonly causes: readonly MismatchCause[]
  /** The time next to the digest, as in `t=1700000000,v1=...`; null: the header has no time. */
  readonly time: string | null
}

/** Longer headers are not read, because no sender writes them. */
const CHARS_MAX = 1024
const DIGEST_BYTES_MIN = 8

interface Peeled {
  readonly text: string
  readonly causes: readonly MismatchCause[]
  readonly time: string | null
}

/** Reads a header value in all notations that senders use for digests. Empty: the value is not a digest in any of them. */
function readSignature(value: string): readonly SignatureReading[] {
  if (value.length > CHARS_MAX) return []
  const { text, causes, time } = peel(value)
  return decode(text).map((reading) => ({ digest: reading.digest, causes: [...causes, ...reading.causes], time }))
}

/** Removes all that surrounds the digest, such as quotes and a prefix. */
function peel(value: string): Peeled {
  const causes: MismatchCause[] = []
  let text = value
  let time: string | null = null
  const take = (next: string, cause: MismatchCause) => {
    if (next === text) return
    text = next
    if (!causes.some(({ code }) => code === cause.code)) causes.push(cause)
  }
  take(text.replace(/\s+/g, ''), causeOf('signature_white_space'))
  take(/^(["'])(.*)\1$/s.exec(text)?.[2] ?? text, causeOf('signature_quoted'))
  if (/%[0-9A-Fa-f]{2}/.test(text)) take(text.replace(/%([0-9A-Fa-f]{2})/g, percentDecoded), causeOf('signature_percent'))
  const timed = /^t=(\d{1,20}),(?:.*,)?v\d=([^,]+)/.exec(text)
  if (timed !== null) {
    time = timed[1] ?? null
    take(timed[2] ?? text, causeOf('signature_prefix'))
  }
  const prefix = /^(?:(?:hmac-?)?sha-?\d{1,3}|md5|hmac|v\d|signature|digest)[=:,]/i.exec(text)?.[0] ?? ''
  take(text.slice(prefix.length), causeOf('signature_prefix', prefix === '' ? null : prefix))
  take(/^(["'])(.*)\1$/s.exec(text)?.[2] ?? text, causeOf('signature_quoted'))
  return { text, causes, time }
}

function percentDecoded(_: string, hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16))
}

function decode(text: string): readonly Omit<SignatureReading, 'time'>[] {
  const readings: Omit<SignatureReading, 'time'>[] = []
  if (/^(?:[0-9A-Fa-f]{2}){8,64}$/.test(text)) readings.push({ digest: Buffer.from(text, 'hex'), causes: [causeOf('signature_hex')] })
  const base64 = /^([A-Za-z0-9+/_-]+)(=*)$/.exec(text)
  if (base64 === null) return readings
  const [, letters = '', padding = ''] = base64
  const digest = Buffer.from(letters, 'base64')
  if (digest.length < DIGEST_BYTES_MIN) return readings
  const causes: MismatchCause[] = []
  if (/[-_]/.test(letters)) causes.push(causeOf('signature_url_safe'))
  if (padding.length < (3 - (digest.length % 3)) % 3) causes.push(causeOf('signature_unpadded'))
  const standard = digest.toString('base64')
  if (causes.length === 0 && standard !== text) causes.push(causeOf('signature_bits'))
  const inner = digest.toString('latin1')
  if (/^(?:[0-9A-Fa-f]{2}){8,64}$/.test(inner))
    readings.push({ digest: Buffer.from(inner, 'hex'), causes: [...causes, causeOf('signature_double', 'of hexadecimal')] })
  else if (/^[A-Za-z0-9+/_-]{22,86}={0,2}$/.test(inner))
    readings.push({ digest: Buffer.from(inner, 'base64'), causes: [...causes, causeOf('signature_double', 'of Base64')] })
  readings.push({ digest, causes })
  return readings
}
