import { isUtf8 } from 'node:buffer'
import {
  brotliCompressSync,
  brotliDecompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gunzipSync,
  gzipSync,
  inflateRawSync,
  inflateSync,
  zstdDecompressSync,
} from 'node:zlib'
import { EVENT_MEMBERS } from '../../core/domain/ingest/fault-in-body.ts'
import { isObject, readJson } from '../../core/domain/json-body.ts'
import { causeOf, type MismatchCause } from './mismatch-causes.rules.ts'

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

interface CompressedForm {
  readonly bytes: Uint8Array
  /** The name of the format. */
  readonly how: string
}

/** Larger results are not tried, because even a small body could decompress to gigabytes. */
const DECOMPRESSED_BYTES_MAX = 1024 * 1024
/** Larger bodies are not compressed, because it would take too long. */
const COMPRESSED_BYTES_MAX = 32 * 1024

/** Tries the usual formats. Yields nothing if the body is not compressed. */
function* decompressions(body: Uint8Array): Generator<CompressedForm, undefined> {
  const bounds = { maxOutputLength: DECOMPRESSED_BYTES_MAX }
  const formats = [
    ['gzip', gunzipSync],
    ['deflate', inflateSync],
    ['deflate without a header', inflateRawSync],
    ['brotli', brotliDecompressSync],
    ['zstd', zstdDecompressSync],
  ] as const
  // It takes long to try all formats, so do not try a body that looks like JSON.
  if (body[0] === 0x7b || body[0] === 0x5b) return
  for (const [how, decompress] of formats) {
    const bytes = orNull(() => decompress(body, bounds))
    if (bytes !== null && bytes.length > 0) yield { bytes, how }
  }
}

function orNull(decompress: () => Uint8Array): Uint8Array | null {
  try {
    return decompress()
  } catch {
    return null
  }
}

/** Compressors write a code for the operating system into the header of gzip. These are Unix, unknown, FAT and NTFS. */
const GZIP_SYSTEMS = [3, 255, 0, 10]
const SYSTEM_AT = 9

/** Compresses a body as the usual programs do. Other programs may produce other bytes. */
function* compressions(body: Uint8Array): Generator<CompressedForm, undefined> {
  if (body.length > COMPRESSED_BYTES_MAX) return
  for (const level of [6, 9, 1]) {
    const packed = gzipSync(body, { level })
    for (const system of GZIP_SYSTEMS) {
      const bytes = Buffer.from(packed)
      bytes[SYSTEM_AT] = system
      yield { bytes, how: 'gzip' }
    }
    yield { bytes: deflateSync(body, { level }), how: 'deflate' }
    yield { bytes: deflateRawSync(body, { level }), how: 'deflate without a header' }
  }
  // Higher qualities take many milliseconds even for a small body, and servers do not use them.
  for (const quality of [4, 5, 6])
    yield { bytes: brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } }), how: 'brotli' }
}

/** A JSON text of a value. `how`: a description of its notation, for the explanation. */
interface JsonSpelling {
  readonly text: string
  readonly how: string
}

interface Layout {
  readonly how: string
  readonly colon: string
  readonly comma: string
  /** The white space of one level of indentation; null: everything is on one line. */
  readonly indent: string | null
  readonly newline: string
  /** Whether arrays stay on one line, as Jackson writes them: `[ 1, 2 ]`. */
  readonly inlineArrays: boolean
}

const ONE_LINE = { indent: null, newline: '', inlineArrays: false } as const
const INDENTED = { colon: ': ', comma: ',', newline: '\n', inlineArrays: false } as const
const LAYOUTS: readonly Layout[] = [
  { how: 'without white space', colon: ':', comma: ',', ...ONE_LINE },
  { how: 'with a space after each colon and comma', colon: ': ', comma: ', ', ...ONE_LINE },
  { how: 'indented by 2 spaces', indent: '  ', ...INDENTED },
  { how: 'indented by 4 spaces', indent: '    ', ...INDENTED },
  { how: 'indented by tabs', indent: '\t', ...INDENTED },
  { how: 'indented by 2 spaces, with CRLF', indent: '  ', ...INDENTED, newline: '\r\n' },
  { how: 'indented by 4 spaces, with CRLF', indent: '    ', ...INDENTED, newline: '\r\n' },
  { how: 'indented, with a space before each colon', colon: ' : ', comma: ',', indent: '  ', newline: '\n', inlineArrays: true },
]

interface Escaping {
  readonly how: string
  readonly escape: (text: string) => string
}

const lower = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
const upper = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
const slashes = (text: string) => text.replaceAll('/', '\\/')
const ascii = (text: string) => text.replace(/[\u007f-\uffff]/g, lower)
const ESCAPINGS: readonly Escaping[] = [
  { how: '', escape: (text) => text },
  { how: 'with \\u escapes in lower case', escape: ascii },
  { how: 'with \\u escapes in upper case', escape: (text) => text.replace(/[\u007f-\uffff]/g, upper) },
  { how: 'with \\/ for slashes', escape: slashes },
  { how: 'with \\/ for slashes and \\u escapes', escape: (text) => slashes(ascii(text)) },
  { how: 'with <, > and & escaped', escape: (text) => text.replace(/[<>&\u2028\u2029]/g, lower) },
  {
    how: 'with all characters escaped that HTML or ASCII lacks',
    escape: (text) => text.replaceAll('\\"', '\\u0022').replace(/[&'+<>`\u007f-\uffff]/g, upper),
  },
]

const DOCUMENTED: readonly string[] = [...EVENT_MEMBERS, 'value', 'languageCode']
const rankOf = (name: string) => (DOCUMENTED.includes(name) ? DOCUMENTED.indexOf(name) : DOCUMENTED.length)

interface Order {
  readonly how: string
  readonly sort: (names: readonly string[]) => readonly string[]
}

const ORDERS: readonly Order[] = [
  { how: '', sort: (names) => names },
  { how: 'with the members in the documented order', sort: (names) => names.toSorted((a, b) => rankOf(a) - rankOf(b)) },
  { how: 'with the members in alphabetical order', sort: (names) => names.toSorted() },
]

/**
 * Writes a JSON value in the notations of the usual libraries, the likelier ones first. It recurses, so the value must not nest deeper than
 * `readJson` accepts.
 */
function* jsonSpellings(value: unknown): Generator<JsonSpelling, undefined> {
  for (const order of ORDERS)
    for (const escaping of ESCAPINGS)
      for (const layout of LAYOUTS) {
        const how = [layout.how, escaping.how, order.how].filter((part) => part !== '').join(', ')
        yield { text: write(value, { layout, escaping, order }, ''), how }
      }
}

interface Spelling {
  readonly layout: Layout
  readonly escaping: Escaping
  readonly order: Order
}

function write(value: unknown, spelling: Spelling, indentation: string): string {
  const { layout, escaping, order } = spelling
  const text = (plain: unknown) => escaping.escape(JSON.stringify(plain) ?? 'null')
  const inner = layout.indent === null ? '' : indentation + layout.indent
  if (Array.isArray(value)) {
    if (layout.inlineArrays) return value.length === 0 ? '[ ]' : `[ ${value.map((item) => write(item, spelling, indentation)).join(', ')} ]`
    return enclose(
      value.map((item) => write(item, spelling, inner)),
      '[]',
      layout,
      indentation,
    )
  }
  if (!isObject(value)) return text(value)
  const members = order.sort(Object.keys(value)).map((name) => `${text(name)}${layout.colon}${write(value[name], spelling, inner)}`)
  if (layout.inlineArrays && members.length === 0) return '{ }'
  return enclose(members, '{}', layout, indentation)
}

function enclose(parts: readonly string[], brackets: string, { comma, indent, newline }: Layout, indentation: string): string {
  const [open, close] = [brackets.charAt(0), brackets.charAt(1)]
  if (indent === null || parts.length === 0) return open + parts.join(comma) + close
  const start = `${newline}${indentation}${indent}`
  return `${open}${start}${parts.join(`${comma}${start}`)}${newline}${indentation}${close}`
}
