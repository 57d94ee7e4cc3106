import type { QuarantineReason } from '../history/observation.ts'
import { parseIdentifier, TRACKING_IDS_MAX } from '../identifiers.ts'
import { parseInstant } from '../instant.ts'
import { isObject, member, nestsDeeperAt, readJson } from '../json-body.ts'

export interface BodyFault {
  /** The invalid member, such as `eventTime` or `trackingIds[1]`; null: the error is not in a single member. */
  readonly member: string | null
  /** Whether the member is missing. Then the position is the closing brace of the object. */
  readonly isMissing: boolean
  /** The offsets of the first byte of the error and of the first byte after it, counted from 0. */
  readonly from: number
  readonly to: number
  /** The text at the position, at most 60 characters; bytes that are no text, in hexadecimal. Empty: a member is missing, or the body ends. */
  readonly found: string
  /** If a member is missing: some members of the event that the relay does not know. The missing member may be one of them, under a new name. */
  readonly unknown: readonly string[]
}

const UNKNOWN_MAX = 3

/** What a list of pushes shows of a body. The body may be invalid: parts that cannot be read are left out. */
export interface BodyGlimpse {
  readonly status: string | null
  /** When the event happened, epoch milliseconds. */
  readonly eventAtMs: number | null
  /** The valid identifiers that the body names. */
  readonly identifiers: readonly string[]
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const anyUtf8 = new TextDecoder('utf-8', { ignoreBOM: true })
const REPLACEMENT = '\u{fffd}'
const FOUND_MAX = 60
/** The reasons for quarantine that are errors at some position of the body's text. */
const OF_TEXT = ['json_syntax', 'too_deep', 'schema', 'tracking_id', 'event_time'] as const satisfies readonly QuarantineReason[]

export const GLIMPSED_NOTHING: BodyGlimpse = { status: null, eventAtMs: null, identifiers: [] }

export function glimpseBody(body: Uint8Array): BodyGlimpse {
  const reading = readJson(body)
  if (!reading.ok || !isObject(reading.value)) return GLIMPSED_NOTHING
  const [status, ids] = [member(reading.value, 'status'), member(reading.value, 'trackingIds')]
  const identifiers = (Array.isArray(ids) ? ids.slice(0, TRACKING_IDS_MAX) : []).flatMap((id) => parseIdentifier(id) ?? [])
  const eventAtMs = parseInstant(member(reading.value, 'eventTime'))?.atMs ?? null
  return { status: typeof status === 'string' && status !== '' ? status : null, eventAtMs, identifiers }
}

/**
 * Finds the error because of which a body is in quarantine. Null: the error is not in the body, or this version of the relay can parse the
 * body. Call it only when somebody looks at the push, because it takes long for a long body.
 */
export function findFault(body: Uint8Array, reason: string | null): BodyFault | null {
  if (reason === 'utf8') return brokenText(body)
  const kind = OF_TEXT.find((one) => one === reason)
  if (kind === undefined) return null
  const text = decode(body)
  if (text === null) return brokenText(body)
  const fault = faultInText(text, kind)
  if (fault === null) return null
  const from = Buffer.byteLength(text.slice(0, fault.from))
  const stands = text.slice(fault.from, fault.to)
  const found = fault.isMissing ? '' : shortened(stands)
  return { ...fault, from, to: from + Buffer.byteLength(stands), found, unknown: fault.isMissing ? unknownIn(text) : [] }
}

function unknownIn(text: string): readonly string[] {
  return [...outlineJson(text).members.keys()]
    .filter((name) => !EVENT_MEMBERS.some((known) => known === name))
    .slice(0, UNKNOWN_MAX)
    .map((name) => shortened(name))
}

function shortened(text: string): string {
  return text.length > FOUND_MAX ? `${text.slice(0, FOUND_MAX)}…` : text
}

/** A position whose offsets count characters of the text, not bytes. */
type TextFault = Omit<BodyFault, 'found' | 'unknown'>

function faultInText(text: string, reason: (typeof OF_TEXT)[number]): TextFault | null {
  if (reason === 'too_deep') {
    const at = nestsDeeperAt(text)
    return at === null ? null : whole({ from: at, to: at + 1 })
  }
  const outline = outlineJson(text)
  const { errorAt, root } = outline
  if (errorAt !== null) return reason === 'json_syntax' ? whole({ from: errorAt, to: Math.min(text.length, errorAt + 1) }) : null
  if (reason === 'json_syntax' || root === null) return null
  if (text[root.from] !== '{') return whole(root)
  if (reason === 'event_time') return faultOf(outline, root, 'eventTime')
  if (reason === 'tracking_id') return faultOfIds(text, outline, root)
  const name = ['status', 'detailedStatus'].find((one) => !isText(text, outline.members.get(one)))
  return name === undefined ? null : faultOf(outline, root, name)
}

function whole(span: Span): TextFault {
  return { member: null, isMissing: false, ...span }
}

function faultOf({ members }: JsonOutline, root: Span, name: string): TextFault {
  const span = members.get(name)
  return span === undefined
    ? { member: name, isMissing: true, from: root.to - 1, to: root.to }
    : { member: name, isMissing: false, ...span }
}

/** Finds the first invalid identifier. If `trackingIds` is no list, empty or too long, returns the position of the member. */
function faultOfIds(text: string, outline: JsonOutline, root: Span): TextFault | null {
  const items = outline.items.get('trackingIds') ?? []
  if (items.length === 0 || items.length > TRACKING_IDS_MAX) return faultOf(outline, root, 'trackingIds')
  const at = items.findIndex(({ from, to }) => parseIdentifier(JSON.parse(text.slice(from, to))) === null)
  const span = items[at]
  return span === undefined ? null : { member: `trackingIds[${at}]`, isMissing: false, ...span }
}

function isText(text: string, span: Span | undefined): boolean {
  return span !== undefined && text[span.from] === '"' && span.to - span.from > 2
}

function decode(body: Uint8Array): string | null {
  try {
    return strictUtf8.decode(body)
  } catch {
    return null
  }
}

/** Finds why a body is not acceptable text: a byte order mark, a byte that is not UTF-8, or a NUL. */
function brokenText(body: Uint8Array): BodyFault | null {
  const text = anyUtf8.decode(body)
  const bytesAt = (from: number, to: number): BodyFault => ({ ...whole({ from, to }), found: hexOf(body.subarray(from, to)), unknown: [] })
  if (text.startsWith('\u{feff}')) return bytesAt(0, 3)
  let byte = 0
  let behind = 0
  for (let at = text.indexOf(REPLACEMENT); at !== -1; at = text.indexOf(REPLACEMENT, at + 1)) {
    byte += Buffer.byteLength(text.slice(behind, at))
    behind = at
    // U+FFFD marks a wrong byte, except where the body itself contains this character.
    if (body[byte] !== 0xef || body[byte + 1] !== 0xbf || body[byte + 2] !== 0xbd) return bytesAt(byte, byte + 1)
  }
  const nul = body.indexOf(0)
  return nul === -1 ? null : bytesAt(nul, nul + 1)
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join(' ')
}

/** A part of a text: from offset `from` (inclusive) to offset `to` (exclusive), in UTF-16 code units. */
interface Span {
  readonly from: number
  readonly to: number
}

/** The positions of the parts of a JSON text. */
interface JsonOutline {
  /** The offset of the first character that makes the text invalid JSON; null: the text is valid. */
  readonly errorAt: number | null
  readonly root: Span | null
  /** The values of the outermost object, by name. If a name is repeated, the last value counts, as in `JSON.parse`. */
  readonly members: ReadonlyMap<string, Span>
  /** The items of each member whose value is an array, by the name of the member. */
  readonly items: ReadonlyMap<string, readonly Span[]>
}

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a]
const CLOSERS: ReadonlyMap<string, string> = new Map([
  ['{', '}'],
  ['[', ']'],
])
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y
const WORDS = ['true', 'false', 'null']

/** The token that must come next. `item`: a value, or the end of an empty array. `name`: a name, or the end of an empty object. */
type Expected = 'value' | 'item' | 'name' | 'next name' | 'colon' | 'comma' | 'end'

/**
 * Finds the parts of a JSON text, or the position of its first error, which `JSON.parse` does not report. It accepts the same texts as
 * `JSON.parse`. It does not recurse, so a text that nests deeply cannot overflow the stack.
 */
export function outlineJson(text: string): JsonOutline {
  const members = new Map<string, Span>()
  const items = new Map<string, Span[]>()
  const open: { readonly closer: string; readonly from: number }[] = []
  let root: Span | null = null
  let name = ''
  let expected: Expected = 'value'
  let at = skipSpace(text, 0)

  const ended = (from: number, to: number): void => {
    if (open.length === 0) root = { from, to }
    else if (open.length === 1 && open[0]?.closer === '}') members.set(name, { from, to })
    else if (open.length === 2 && open[0]?.closer === '}' && open[1]?.closer === ']') items.get(name)?.push({ from, to })
    expected = open.length === 0 ? 'end' : 'comma'
  }
  /** Returns the end of the token that begins here; null: no token may begin here. */
  const step = (): number | null => {
    const character = text[at] ?? ''
    const inner = open.at(-1)
    const mayClose = expected === 'comma' || expected === 'item' || expected === 'name'
    if (mayClose && inner !== undefined && character === inner.closer) {
      open.pop()
      ended(inner.from, at + 1)
      return at + 1
    }
    if (expected === 'comma') {
      if (text.charCodeAt(at) !== COMMA) return null
      expected = inner?.closer === '}' ? 'next name' : 'value'
      return at + 1
    }
    if (expected === 'colon') {
      expected = 'value'
      return text.charCodeAt(at) === COLON ? at + 1 : null
    }
    if (expected === 'name' || expected === 'next name') {
      const to = text.charCodeAt(at) === QUOTE ? endOfString(text, at) : null
      if (to !== null && to > 0 && open.length === 1) name = String(JSON.parse(text.slice(at, to)))
      expected = 'colon'
      return to
    }
    if (expected === 'end') return null
    const closer = CLOSERS.get(character)
    if (closer === undefined) {
      const to = endOfScalar(text, at)
      if (to !== null && to > 0) ended(at, to)
      return to
    }
    if (open.length === 1 && open[0]?.closer === '}' && closer === ']') items.set(name, [])
    open.push({ closer, from: at })
    expected = closer === '}' ? 'name' : 'item'
    return at + 1
  }

  while (at < text.length) {
    const to = step()
    if (to === null || to < 0) return { errorAt: to === null ? at : -to, root, members, items }
    at = skipSpace(text, to)
  }
  return { errorAt: root === null ? text.length : null, root, members, items }
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && ' \t\n\r'.includes(text.charAt(at))) at++
  return at
}

/** Returns the end of a string, number or word. Null: no such value begins at `from`. A negative number is minus the position of an error. */
function endOfScalar(text: string, from: number): number | null {
  if (text.charCodeAt(from) === QUOTE) return endOfString(text, from)
  const word = WORDS.find((one) => text.startsWith(one, from))
  if (word !== undefined) return from + word.length
  NUMBER.lastIndex = from
  return NUMBER.test(text) ? NUMBER.lastIndex : null
}

/** Returns the end of a string. A negative number is minus the position of an error. */
function endOfString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === QUOTE) return at + 1
    if (unit < 0x20) return -at
    if (unit !== BACKSLASH) continue
    ESCAPE.lastIndex = at
    if (!ESCAPE.test(text)) return -at
    at = ESCAPE.lastIndex - 1
  }
  return -text.length
}

/** The members of an event, in the order in which the carrier's documentation lists them (spec, "Webhook event payload"). */
export const EVENT_MEMBERS = [
  'status',
  'detailedStatus',
  'eventTime',
  'location',
  'trackingIds',
  'distributionType',
  'displayToConsumer',
  'consumerDescription',
  'detailedStatusDescription',
] as const

/** Describes each reason for quarantine, in a few words for tables, and as a sentence. */
const REASONS: Readonly<Record<QuarantineReason, readonly [short: string, sentence: string]>> = {
  content_encoding: ['it is compressed', 'It is compressed, as its Content-Encoding says. The relay never inflates what it received.'],
  utf8: ['it is not UTF-8', 'It is not UTF-8, or it begins with a byte order mark. The carrier must send JSON in UTF-8.'],
  json_syntax: ['it is not JSON', 'It is not JSON: it may have been cut off, or be something else.'],
  too_deep: ['it nests more than 64 levels deep', 'It nests more than 64 levels deep. An event of the carrier has only a few levels.'],
  schema: [
    'it is not one event',
    'It is JSON, but not an event. An event is one object with the texts status and detailedStatus, neither of them empty.',
  ],
  tracking_id: [
    'a tracking id is not 4 to 40 letters and digits',
    'Its trackingIds are missing, or one of them is not 4 to 40 letters and digits, so its parcel is unknown.',
  ],
  event_time: ['eventTime is not a UTC time', 'Its eventTime is not a time in UTC, such as 2026-03-01T10:00:00.250Z.'],
  parcel_full: ['its parcel holds 2,000 entries', 'Its parcel holds 2,000 entries already, which is the most a parcel may have.'],
  failed: ['recording it failed', 'It is an event, but recording it failed. The log says why.'],
}

const BY_REASON: ReadonlyMap<string, readonly [short: string, sentence: string]> = new Map(Object.entries(REASONS))

/** The reasons with their short descriptions, as filters offer them. */
export const REASON_CHOICES: readonly (readonly [reason: string, text: string])[] = [...BY_REASON].map(([reason, [short]]) => [
  reason,
  short,
])

/** Describes a reason in a few words, without a full stop. A reason that only another version knows is shown by its code. */
export function reasonText(reason: string): string {
  return BY_REASON.get(reason)?.[0] ?? reason.replaceAll('_', ' ')
}

export function reasonSentence(reason: string): string {
  return BY_REASON.get(reason)?.[1] ?? `The reason is ${reason}.`
}
