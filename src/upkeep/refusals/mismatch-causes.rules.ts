import type { NamedKey } from '../../core/domain/ingest/signature.ts'
import { isObject } from '../../core/domain/json-body.ts'

/** All causes why a signature does not match: the code of each, and a text with its meaning and its remedy. */
export const MISMATCH_CAUSES = {
  signature_missing: 'The request has no x-service-hmac-sha256 header.',
  signature_repeated:
    'The x-service-hmac-sha256 header occurs more than once. The sender, or a proxy that adds headers, must send it once.',
  signature_hex: 'The signature is written in hexadecimal. The sender must write the 32 bytes of the HMAC in Base64.',
  signature_url_safe: 'The signature is url-safe Base64, with - and _. The sender must use standard Base64, with + and /.',
  signature_unpadded: 'The signature lacks the = at the end of its Base64. The sender must keep the padding.',
  signature_double:
    'The signature is encoded twice: it is the Base64 of hexadecimal or of Base64. The sender must encode the 32 bytes of the HMAC once.',
  signature_prefix: 'Something stands before the signature, such as sha256=. The sender must send the Base64 alone.',
  signature_percent: 'The signature is percent-encoded, as in an address. The sender must send the Base64 as it is.',
  signature_quoted: 'The signature is in quotes. The sender must leave them out.',
  signature_white_space: 'There is white space in or around the signature. The sender must send the Base64 alone, on one line.',
  signature_truncated: 'The signature is cut: only its beginning was sent. The sender must send all 32 bytes of the HMAC in Base64.',
  signature_bits: 'The last character of the signature has excess bits. The sender must use a standard Base64 encoder.',
  signature_malformed: 'The header contains no digest in Base64 or hexadecimal.',
  key_sent: 'The header contains the key itself. Replace this key now, and have the sender send the HMAC instead.',
  algorithm: 'The sender signs with another algorithm. It must use HMAC-SHA256.',
  digest_without_key:
    'The sender hashes the body without a key, so anybody could make the same digest. It must use HMAC-SHA256 with the shared key.',
  digest_with_key: 'The sender hashes the key and the body one after the other. It must use HMAC-SHA256.',
  signed_with_time: 'The sender signs a time or an id together with the body. It must sign the exact body alone.',
  other_key: 'The sender signs with a key that the relay knows but does not accept for pushes.',
  key_newline: 'The sender counts a newline at the end as part of the key. Remove it from the file or variable the sender reads.',
  key_white_space: 'The sender drops white space that is part of the key here. Remove it here, or use a key without any.',
  key_extra_space: 'The sender counts a space before or after the key as part of it. Remove it at the sender.',
  key_quoted: 'The sender counts quotes as part of the key. Remove them at the sender.',
  key_unquoted: 'The key here is in quotes, which count as part of it; the sender signs without them. Remove them here.',
  key_base64_decoded: 'The sender decodes the key from Base64. It must use the text of the key, as its UTF-8 bytes.',
  key_hex_decoded: 'The sender decodes the key from hexadecimal. It must use the text of the key, as its UTF-8 bytes.',
  key_base64_encoded: 'The sender encodes the key in Base64 first. It must use the text of the key, as its UTF-8 bytes.',
  key_hex_encoded: 'The sender writes the key in hexadecimal first. It must use the text of the key, as its UTF-8 bytes.',
  key_prefix:
    'The key has the prefix whsec_, which the sender takes off before it decodes the rest. It must use the whole text of the key.',
  key_prefix_added: 'The sender counts a prefix whsec_ as part of the key. It must use the text of the key as it is here.',
  key_unpadded: 'The sender drops the = at the end of the key. It must use the whole text of the key.',
  key_normalised:
    'The sender composes or decomposes the letters with accents of the key (Unicode normalisation). Use a key of ASCII letters.',
  key_swapped: 'The sender swaps the key and the body: it must take the key as the key of the HMAC, and the body as the message.',
  key_case: 'The sender writes the letters of the key in the other case.',
  key_percent: 'The sender decodes + or % in the key, as in an address. It must use the key as it is written.',
  key_bom: 'The sender counts a byte order mark as part of the key. Save its file without one.',
  key_utf16: 'The sender uses the bytes of the key in UTF-16. It must use its UTF-8 bytes.',
  key_latin1: 'The sender uses the bytes of the key in Latin-1. It must use its UTF-8 bytes.',
  key_empty: 'The sender signs with an empty key. It has not been given the key.',
  body_missing: 'The push arrived without a body. The sender does not send it, or a proxy drops it.',
  body_empty: 'The signature is that of an empty body. The sender signs before it has written the body, or a proxy adds a body.',
  body_trailing_newline: 'The body has lost or gained a newline at its end after it was signed.',
  body_white_space: 'White space around the body was added or dropped after it was signed.',
  body_crlf: 'The newlines of the body were changed between LF and CRLF after it was signed.',
  body_bom: 'A byte order mark at the start of the body was added or dropped after it was signed.',
  body_nul: 'A NUL byte at the end of the body was added or dropped after it was signed.',
  body_reserialised: 'The body was parsed and written again after it was signed: the JSON is the same, its bytes are not.',
  body_utf16: 'The sender signs the body as UTF-16 and sends it as UTF-8. It must sign the bytes that it sends.',
  body_latin1: 'The sender signs the body as Latin-1 and sends it as UTF-8. It must sign the bytes that it sends.',
  body_sent_utf16: 'The body arrived as UTF-16, and the sender signed it as UTF-8. It must send the bytes that it signs.',
  body_sent_latin1: 'The body arrived as Latin-1, and the sender signed it as UTF-8. It must send the bytes that it signs.',
  body_recoded: 'The body was encoded twice: its UTF-8 bytes were taken for Latin-1 and encoded again after it was signed.',
  body_normalised: 'The letters with accents in the body were composed or decomposed (Unicode normalisation) after it was signed.',
  body_compressed: 'The body was compressed after it was signed. The sender must send it as it was signed.',
  body_inflated: 'The body was decompressed after it was signed. No proxy may decompress what it passes on to the webhook.',
  body_base64: 'The body was encoded in Base64, or decoded from it, after it was signed.',
  body_json_string: 'The body was put into a JSON string, or taken out of one, after it was signed.',
  body_form: 'The body was percent-encoded as a form, or decoded from one, after it was signed.',
  body_wrapped: 'The body was put into an envelope, or taken out of one, after it was signed.',
  body_unread: 'The relay examined the header alone: the body was not read to its end, or is too large to be examined.',
  body_incomplete: 'The body is JSON that was cut off or damaged, so it is not what the sender signed.',
  unknown:
    'None of the ways to sign that the relay tried gives this signature: the sender has another key, or the body was changed on its way.',
} as const

export type MismatchCode = keyof typeof MISMATCH_CAUSES

export interface MismatchCause {
  readonly code: MismatchCode
  /** A detail for `code`, such as `HMAC-SHA1` or the name of a key, `webhook.sharedKeys[1]`; never a key. Null: no detail. */
  readonly detail: string | null
}

/** The codes of all causes, including `unknown`. */
export const MISMATCH_CODES = Object.keys(MISMATCH_CAUSES)

export function causeOf(code: MismatchCode, detail: string | null = null): MismatchCause {
  return { code, detail }
}

/** Reads a stored cause. Null: this version does not know its code, because another version stored it. */
export function readCause(value: unknown): MismatchCause | null {
  if (!isObject(value)) return null
  const { code, detail } = value
  return isMismatchCode(code) ? { code, detail: typeof detail === 'string' ? detail : null } : null
}

function isMismatchCode(code: unknown): code is MismatchCode {
  return typeof code === 'string' && Object.hasOwn(MISMATCH_CAUSES, code)
}

export function describeCause({ code, detail }: MismatchCause): string {
  return detail === null ? MISMATCH_CAUSES[code] : `${MISMATCH_CAUSES[code]} Here: ${detail}.`
}

/** Bytes that a sender may have used as the key. `causes`: the mistakes that turn the key into these bytes. */
export interface KeyVariant {
  readonly name: string
  readonly bytes: Uint8Array
  readonly causes: readonly MismatchCause[]
}

/** Returns the right bytes of a key: its text in UTF-8. */
export function plainKey({ name, key }: NamedKey): KeyVariant {
  return { name, bytes: Buffer.from(key, 'utf8'), causes: [] }
}

/** Returns the wrong bytes into which senders turn a key by usual mistakes. */
export function keyVariants({ name, key }: NamedKey): readonly KeyVariant[] {
  const variants: KeyVariant[] = []
  const add = (bytes: Uint8Array | string, ...causes: readonly MismatchCause[]) => {
    const made = typeof bytes === 'string' ? Buffer.from(bytes, 'utf8') : bytes
    if (made.length > 0 && !Buffer.from(key, 'utf8').equals(made)) variants.push({ name, bytes: made, causes })
  }
  add(`${key}\n`, causeOf('key_newline'))
  add(`${key}\r\n`, causeOf('key_newline'))
  for (const spaced of [`${key} `, ` ${key}`, `\t${key}`, `${key}\t`]) add(spaced, causeOf('key_extra_space'))
  add(key.trim(), causeOf('key_white_space'))
  add(/^(["'])(.+)\1$/s.exec(key)?.[2] ?? key, causeOf('key_unquoted'))
  add(`"${key}"`, causeOf('key_quoted'))
  add(`'${key}'`, causeOf('key_quoted'))
  const text = key.trim()
  if (/^[A-Za-z0-9+/_-]{8,}={0,2}$/.test(text)) add(Buffer.from(text, 'base64'), causeOf('key_base64_decoded'))
  if (/^(?:[0-9A-Fa-f]{2}){4,}$/.test(text)) add(Buffer.from(text, 'hex'), causeOf('key_hex_decoded'))
  if (text.startsWith('whsec_')) {
    add(Buffer.from(text.slice('whsec_'.length), 'base64'), causeOf('key_prefix'))
    add(text.slice('whsec_'.length), causeOf('key_prefix'))
  }
  add(`whsec_${key}`, causeOf('key_prefix_added'))
  add(key.replace(/=+$/, ''), causeOf('key_unpadded'))
  for (const form of ['NFC', 'NFD'] as const) add(key.normalize(form), causeOf('key_normalised', `the sender uses ${form}`))
  const bytes = Buffer.from(key, 'utf8')
  add(bytes.toString('base64'), causeOf('key_base64_encoded'))
  add(bytes.toString('hex'), causeOf('key_hex_encoded'))
  add(key.toUpperCase(), causeOf('key_case', 'upper case'))
  add(key.toLowerCase(), causeOf('key_case', 'lower case'))
  add(key.replaceAll('+', ' '), causeOf('key_percent'))
  add(encodeURIComponent(key.toWellFormed()), causeOf('key_percent'))
  add(
    key.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    causeOf('key_percent'),
  )
  add(`\uFEFF${key}`, causeOf('key_bom'))
  add(Buffer.from(key, 'utf16le'), causeOf('key_utf16'))
  add(Buffer.from(key, 'latin1'), causeOf('key_latin1'))
  return variants
}

/** An empty key. Senders use it if their key is not configured. */
export const EMPTY_KEY: KeyVariant = { name: 'no key', bytes: new Uint8Array(), causes: [causeOf('key_empty')] }
