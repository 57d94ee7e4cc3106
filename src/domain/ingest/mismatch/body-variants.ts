import { isUtf8 } from 'node:buffer'
import { isObject, readJson } from '../../json-body.ts'
import { compressions, decompressions } from './compressed-forms.ts'
import { jsonSpellings } from './json-spellings.ts'
import { causeOf, type MismatchCause } from './mismatch-causes.ts'

/** A body that the sender may have signed although another body arrived. `causes`: what may have turned one into the other. */
export interface BodyVariant {
  readonly bytes: Uint8Array
  readonly causes: readonly MismatchCause[]
}

const BOM = Buffer.from([0xef, 0xbb, 0xbf])
const CRLF = /\r\n/g

/** Makes the bodies that the sender may have signed instead of this one, the likelier ones first. */
export function* bodyVariants(body: Uint8Array): Generator<BodyVariant, undefined> {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  yield* transported(bytes)
  for (const { bytes: plain, causes } of unwrapped(bytes)) {
    if (causes.length > 0) yield { bytes: plain, causes }
    yield* reserialised(plain, causes)
  }
  for (const { bytes: packed, how } of compressions(bytes)) yield { bytes: packed, causes: [causeOf('body_inflated', how)] }
}

/** Makes bodies with the small changes that editors, shells and proxies cause. */
function* transported(body: Buffer): Generator<BodyVariant, undefined> {
  const text = body.toString('latin1')
  const made = (next: string, ...causes: readonly MismatchCause[]): BodyVariant => ({ bytes: Buffer.from(next, 'latin1'), causes })
  const newline = causeOf('body_trailing_newline')
  yield made(`${text}\n`, newline)
  yield made(`${text}\r\n`, newline)
  if (/\r?\n$/.test(text)) yield made(text.replace(/\r?\n$/, ''), newline)
  if (text.includes('\n')) {
    const [unix, windows] = [text.replace(CRLF, '\n'), text.replace(CRLF, '\n').replaceAll('\n', '\r\n')]
    if (unix !== text) yield made(unix, causeOf('body_crlf', 'the sender signed LF'))
    if (windows !== text) yield made(windows, causeOf('body_crlf', 'the sender signed CRLF'))
    if (!text.endsWith('\n')) yield made(`${windows}\r\n`, causeOf('body_crlf', 'the sender signed CRLF'), newline)
    if (unix !== text && unix.endsWith('\n')) yield made(unix.slice(0, -1), causeOf('body_crlf', 'the sender signed LF'), newline)
  }
  yield { bytes: Buffer.concat([BOM, body]), causes: [causeOf('body_bom', 'the sender signed one')] }
  if (body.subarray(0, 3).equals(BOM)) yield { bytes: body.subarray(3), causes: [causeOf('body_bom', 'the sender signed none')] }
  const trimmed = text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '')
  if (trimmed !== text) yield made(trimmed, causeOf('body_white_space'))
  yield made(`${text}\0`, causeOf('body_nul'))
  if (text.endsWith('\0')) yield made(text.replace(/\0+$/, ''), causeOf('body_nul'))
  yield { bytes: new Uint8Array(), causes: [causeOf('body_empty')] }
}

/** Makes the body itself, and then the body decompressed, in Base64 and in other encodings. */
function* unwrapped(body: Buffer): Generator<BodyVariant, undefined> {
  yield { bytes: body, causes: [] }
  for (const { bytes, how } of decompressions(body)) yield { bytes, causes: [causeOf('body_compressed', how)] }
  yield { bytes: Buffer.from(body.toString('base64'), 'latin1'), causes: [causeOf('body_base64', 'the sender signed the Base64')] }
  if (isUtf8(body)) yield* recoded(body.toString('utf8'))
  yield* decoded(body)
}

/** Reads a body that is not UTF-8, or full of NUL bytes, in the encodings in which a sender may have sent what it signed as UTF-8. */
function* decoded(body: Buffer): Generator<BodyVariant, undefined> {
  const made = (text: string, cause: MismatchCause): BodyVariant => ({
    bytes: Buffer.from(text.replace(/^\uFEFF/, ''), 'utf8'),
    causes: [cause],
  })
  if (!isUtf8(body)) yield made(body.toString('latin1'), causeOf('body_sent_latin1'))
  if (body.length % 2 !== 0 || !(body.includes(0) || !isUtf8(body))) return
  yield made(body.toString('utf16le'), causeOf('body_sent_utf16', 'little-endian'))
  yield made(Buffer.from(body).swap16().toString('utf16le'), causeOf('body_sent_utf16', 'big-endian'))
}

function* recoded(text: string): Generator<BodyVariant, undefined> {
  const made = (next: string, ...causes: readonly MismatchCause[]): BodyVariant => ({ bytes: Buffer.from(next, 'utf8'), causes })
  if (/^[A-Za-z0-9+/_\s-]{8,}={0,2}\s*$/.test(text))
    yield { bytes: Buffer.from(text, 'base64'), causes: [causeOf('body_base64', 'the sender signed the decoded bytes')] }
  // A text of ASCII alone has the same bytes in Latin-1, in NFC and in NFD.
  if (/[\u0080-\uffff]/.test(text)) {
    if (!/[\u0100-\uffff]/.test(text)) {
      const single = Buffer.from(text, 'latin1')
      yield { bytes: single, causes: [causeOf(isUtf8(single) ? 'body_recoded' : 'body_latin1')] }
    }
    for (const form of ['NFC', 'NFD'] as const)
      if (text.normalize(form) !== text) yield made(text.normalize(form), causeOf('body_normalised', `the sender signed ${form}`))
  }
  yield { bytes: Buffer.from(text, 'utf16le'), causes: [causeOf('body_utf16', 'little-endian')] }
  yield { bytes: Buffer.from(`\uFEFF${text}`, 'utf16le'), causes: [causeOf('body_utf16', 'little-endian, with a byte order mark')] }
  yield { bytes: Buffer.from(text, 'utf16le').swap16(), causes: [causeOf('body_utf16', 'big-endian')] }
  const form = /^(?:[\w.-]+=)?((?:[\w.*+~!'()-]|%[0-9A-Fa-f]{2})+)$/.exec(text)?.[1]
  if (form?.includes('%') === true) yield made(formDecoded(form), causeOf('body_form'))
  yield made(encodeURIComponent(text.toWellFormed()), causeOf('body_form'))
  yield made(JSON.stringify(text), causeOf('body_json_string', 'the sender signed the string'))
  yield* inEnvelopes(text)
}

function formDecoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}

/** Wraps the body in a list, and takes out what the body may wrap: the items of a list, members with usual names, or the text of a string. */
function* inEnvelopes(text: string): Generator<BodyVariant, undefined> {
  const made = (next: string, ...causes: readonly MismatchCause[]): BodyVariant => ({ bytes: Buffer.from(next, 'utf8'), causes })
  const reading = readJson(Buffer.from(text, 'utf8'))
  if (!reading.ok) return
  yield made(`[${text}]`, causeOf('body_wrapped', 'the sender signed a list of one'))
  const { value } = reading
  if (typeof value === 'string') yield made(value, causeOf('body_json_string', 'the sender signed what is in the string'))
  const inner = Array.isArray(value) ? value : isObject(value) ? ENVELOPE_MEMBERS.map((name) => value[name]) : []
  for (const item of inner.slice(0, ENVELOPE_ITEMS_MAX)) {
    if (typeof item === 'string') yield made(item, causeOf('body_wrapped', 'the sender signed what is in the envelope'))
    if (isObject(item)) yield made(JSON.stringify(item), causeOf('body_wrapped', 'the sender signed what is in the envelope'))
  }
}

const ENVELOPE_MEMBERS = ['body', 'data', 'event', 'payload', 'message', 'Message', 'detail']
const ENVELOPE_ITEMS_MAX = 8

/** Makes the same JSON value in other notations, with and without a newline at the end. */
function* reserialised(body: Uint8Array, causes: readonly MismatchCause[]): Generator<BodyVariant, undefined> {
  const withoutMark = Buffer.from(body).subarray(0, 3).equals(BOM) ? body.subarray(3) : body
  const reading = readJson(withoutMark)
  if (!reading.ok || typeof reading.value !== 'object') return
  for (const { text, how } of jsonSpellings(reading.value)) {
    if (text === reading.text) continue
    const cause = causeOf('body_reserialised', `the sender signed it ${how}`)
    yield { bytes: Buffer.from(text, 'utf8'), causes: [...causes, cause] }
    yield { bytes: Buffer.from(`${text}\n`, 'utf8'), causes: [...causes, cause, causeOf('body_trailing_newline')] }
  }
}
