import type { z } from 'zod'

/** How deep JSON may nest (DOMAIN 5.3). Without a limit, it could overflow the stack of recursive functions that read it later. */
const DEPTH_MAX = 64

/** Parsed JSON with its text, or the reason why it could not be parsed. */
export type ParsedJson =
  | { readonly ok: true; readonly value: unknown; readonly text: string }
  | { readonly ok: false; readonly reason: 'utf8' | 'json_syntax' | 'too_deep' }

/** The members of a JSON object in the order received, with numbers as they were written. */
export type RawMembers = readonly (readonly [name: string, json: string])[]

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Parses bytes as JSON in UTF-8. A byte order mark, a NUL (as in UTF-16) or an invalid sequence of bytes gives the reason `utf8`.
 * `JSON.parse` is not recursive, so the depth can be checked after it.
 */
export function readJson(body: Uint8Array): ParsedJson {
  let text: string
  try {
    text = strictUtf8.decode(body)
  } catch {
    return { ok: false, reason: 'utf8' }
  }
  if (text.charCodeAt(0) === 0xfeff || text.includes('\u0000')) return { ok: false, reason: 'utf8' }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { ok: false, reason: 'json_syntax' }
  }
  return nestsDeeperAt(text) === null ? { ok: true, value, text } : { ok: false, reason: 'too_deep' }
}

/** Returns the offset of the first bracket in a valid JSON text that nests deeper than `max`; null: no bracket nests so deep. */
export function nestsDeeperAt(text: string, max = DEPTH_MAX): number | null {
  // A text with at most `max` opening brackets cannot nest too deep. This quick check is enough for nearly all bodies.
  if (occurrences(text, '{', max) + occurrences(text, '[', max) <= max) return null
  let depth = 0
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === 0x22) inString = !inString
    else if (inString) at += unit === 0x5c ? 1 : 0
    else if (unit === 0x5b || unit === 0x7b) {
      if (++depth > max) return at
    } else if (unit === 0x5d || unit === 0x7d) depth--
  }
  return null
}

/** Stops counting at `enough` + 1. */
function occurrences(text: string, character: string, enough: number): number {
  let count = 0
  for (let at = text.indexOf(character); at !== -1 && count <= enough; at = text.indexOf(character, at + 1)) count++
  return count
}

/** Whether a value is a JSON object: not null and not an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns a member of a parsed JSON object; undefined: it is missing. Ignores inherited properties such as `constructor`. */
export function member(object: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

/** Returns the members of an object whose names are not in `known`, as JSON text. */
export function unknownMembers(object: Readonly<Record<string, unknown>>, known: ReadonlySet<string>): RawMembers {
  return Object.keys(object)
    .filter((name) => !known.has(name))
    .map((name) => [name, JSON.stringify(object[name])] as const)
}

const hasRawJson = (json: object): json is { rawJSON(text: string): unknown; isRawJSON(value: unknown): boolean } => 'rawJSON' in json

/** Parses a text that `readJson` accepted. Keeps numbers as they were received (`1e400`, 20 digits, `-0`), for `JSON.stringify`. */
export function parseKeepingNumbers(text: string): unknown {
  const json: object = JSON
  if (!hasRawJson(json)) return JSON.parse(text)
  return JSON.parse(text, (_name: string, value: unknown, context?: { readonly source?: string }) =>
    typeof value === 'number' && context?.source !== undefined ? json.rawJSON(context.source) : value,
  )
}

/** Whether a value is a number that `parseKeepingNumbers` has kept as it was written. */
export function isRawNumber(value: unknown): boolean {
  const json: object = JSON
  return hasRawJson(json) && json.isRawJSON(value)
}

/** Parses JSON that the relay has stored. Undefined: the text is damaged. A damaged row is skipped, and never ends a start. */
export function parseStored(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Parses a text that the relay has stored by its schema. Null: it is damaged or has another format. */
export function parseStoredAs<T>(schema: z.ZodType<T>, text: string): T | null {
  return schema.safeParse(parseStored(text)).data ?? null
}
