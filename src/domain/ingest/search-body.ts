import { isUnmistakable, type NameSearch, namesIn } from '../names-in-text.ts'

const ESCAPED = /\\u([0-9A-Fa-f]{4})|\\[bfnrt"\\/]/g
const WORD = /[A-Z0-9]+/g
const [LENGTH_MIN, LENGTH_MAX] = [4, 40]

/**
 * Returns the words in a body or a text that may be identifiers, in upper case. The body may be invalid JSON or in UTF-16, and may contain
 * escaped characters. A compressed body must be decompressed first.
 */
export function wordsInBody(body: Uint8Array): ReadonlySet<string> {
  const text = unescaped(textOf(body)).toUpperCase()
  return new Set((text.match(WORD) ?? []).filter(({ length }) => length >= LENGTH_MIN && length <= LENGTH_MAX))
}

/** A string of JSON, with the colon of a member's name; a bracket; or what stands outside of strings, such as a number. */
const TOKEN = /"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?|[{}[\]]|[^"{}[\],:]+/gs
const INSTANT = /\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?/g
const LITERALS = new Set(['true', 'false', 'null'])
/** Members of events and answers whose values are instants, enumerations or languages. */
const FIXED = new Set(['status', 'detailedStatus', 'eventTime', 'eventTimestamp', 'distributionType', 'displayToConsumer', 'languageCode'])

/** `named`: the identifiers that the body names. `isUnclear`: it may name one, as a part of a longer word. */
export interface NamesInBody {
  readonly named: readonly string[]
  readonly isUnclear: boolean
}

/**
 * Finds identifiers in a pushed body, which need not be valid JSON. Instants never name a parcel. Names of members, and members that hold
 * enumerations, name only what is unmistakable.
 */
export function namesInBody(body: Uint8Array, search: NameSearch): NamesInBody {
  const named = new Set<string>()
  let isUnclear = false
  for (const { text, isFixed } of textsIn(textOf(body)))
    for (const { value, isClear } of namesIn(text, search)) {
      if (isFixed && !isUnmistakable(value)) continue
      if (isClear) named.add(value)
      else isUnclear = true
    }
  return { named: [...named], isUnclear: isUnclear && named.size === 0 }
}

function* textsIn(body: string): Generator<{ readonly text: string; readonly isFixed: boolean }> {
  const outer: string[] = []
  let name = ''
  for (const [token, string, colon] of body.replace(INSTANT, ' ').matchAll(TOKEN)) {
    if (token === '{' || token === '[') outer.push(name)
    else if (token === '}' || token === ']') name = outer.pop() ?? ''
    else if (colon !== undefined) {
      name = unescaped(string ?? '')
      yield { text: name, isFixed: true }
    } else if (string !== undefined) yield { text: unescaped(string), isFixed: FIXED.has(name) }
    else if (!LITERALS.has(token.trim())) yield { text: unescaped(token), isFixed: FIXED.has(name) }
  }
}

/** UTF-16 has a NUL beside each ASCII character. */
function textOf(body: Uint8Array): string {
  return body.includes(0) ? Buffer.from(body).toString('latin1').replaceAll('\0', '') : Buffer.from(body).toString()
}

function unescaped(text: string): string {
  return text.replace(ESCAPED, (_escape, code: string | undefined) =>
    code === undefined ? ' ' : String.fromCharCode(Number.parseInt(code, 16)),
  )
}
