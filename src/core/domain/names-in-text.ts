/** A place in a text where an identifier stands. `to` is exclusive. */
export interface NameInText {
  /** In upper case, without spaces and hyphens. */
  readonly value: string
  readonly from: number
  readonly to: number
  /** False: letters or digits around it may make it a part of another identifier. */
  readonly isClear: boolean
}

/** What to look for. `lengths`: the lengths that a name may have. */
export interface NameSearch {
  readonly lengths: ReadonlySet<number>
  isName(value: string): boolean
}

const [LENGTH_MIN, LENGTH_MAX] = [4, 40]
/** A longer word is no print of an identifier but encoded data, and would take long to compare. */
const LONG_WORD = 200
const WORD = /[A-Za-z0-9]+/g
/** What people and labels print between the groups of a number (DOMAIN 1.1). */
const BETWEEN_GROUPS = /^[\s\p{Pd}\u2212\p{Cf}\u00ad]+$/u

export const ANY_LENGTH: ReadonlySet<number> = new Set(Array.from({ length: LENGTH_MAX - LENGTH_MIN + 1 }, (_, nth) => LENGTH_MIN + nth))

export function searchFor(identifiers: ReadonlySet<string>): NameSearch {
  return { lengths: new Set([...identifiers].map(({ length }) => length)), isName: (value) => identifiers.has(value) }
}

/** Whether a name has too many letters and digits to occur by chance: it is no year, and no word such as `TRUE`. */
function isUnmistakable(value: string): boolean {
  return value.length >= 8 && /\d/.test(value)
}

interface Word {
  readonly word: string
  readonly from: number
  readonly to: number
  /** Only what may stand between the groups of a number separates the next word from it. */
  readonly goesOn: boolean
}

/**
 * Finds names in a text: words, numbers that are printed in groups (`AB 730 000 001 SE`), and unmistakable names within longer words. These are
 * clear if letters meet digits at both ends, as in `id84000001`.
 */
function* namesIn(text: string, search: NameSearch): Generator<NameInText> {
  const words = wordsOf(text)
  for (const [at, first] of words.entries()) {
    yield* namesWithin(first, search)
    let value = ''
    for (let next = at, last: Word | undefined = first; last !== undefined; ) {
      value += last.word
      if (value.length > LENGTH_MAX) break
      if (search.lengths.has(value.length) && search.isName(value)) yield { value, from: first.from, to: last.to, isClear: true }
      last = last.goesOn ? words[++next] : undefined
    }
  }
}

function wordsOf(text: string): readonly Word[] {
  const found = [...text.matchAll(WORD)]
  return found.map(({ 0: word, index }, at) => {
    const to = index + word.length
    return { word: word.toUpperCase(), from: index, to, goesOn: BETWEEN_GROUPS.test(text.slice(to, found[at + 1]?.index ?? to)) }
  })
}

function* namesWithin({ word, from }: Word, { lengths, isName }: NameSearch): Generator<NameInText> {
  if (word.length > LONG_WORD) return
  for (const length of lengths)
    for (let at = 0; length < word.length && at + length <= word.length; at++) {
      const value = word.slice(at, at + length)
      if (!isUnmistakable(value) || !isName(value)) continue
      yield { value, from: from + at, to: from + at + length, isClear: isEnd(word, at) && isEnd(word, at + length) }
    }
}

/** Whether a word begins or ends here, or letters meet digits. */
function isEnd(word: string, at: number): boolean {
  const [before, after] = [word[at - 1], word[at]]
  return before === undefined || after === undefined || /\d/.test(before) !== /\d/.test(after)
}

/** `names`: the clear names, which were replaced. `isUnclear`: other names may stay in the text. */
export interface ReplacedNames {
  readonly text: string
  readonly names: readonly string[]
  readonly isUnclear: boolean
}

/** Replaces the clear names in a text. Null: there are no names. */
export function replaceNames(text: string, search: NameSearch, by: string): ReplacedNames | null {
  const found = [...namesIn(text, search)].sort((a, b) => a.from - b.from || b.to - a.to)
  if (found.length === 0) return null
  const clear = found.filter(({ isClear }) => isClear)
  const isUnclear = found.some(({ from, to }) => !clear.some((one) => one.from <= from && to <= one.to))
  let [replaced, end] = ['', 0]
  for (const { from, to } of clear) {
    if (from >= end) replaced += text.slice(end, from) + by
    end = Math.max(end, to)
  }
  return { text: replaced + text.slice(end), names: clear.map(({ value }) => value), isUnclear }
}

const ESCAPED = /\\u([0-9A-Fa-f]{4})|\\[bfnrt"\\/]/g
const UPPER_WORD = /[A-Z0-9]+/g

/**
 * Returns the words in a body or a text that may be identifiers, in upper case. The body may be invalid JSON or in UTF-16, and may contain
 * escaped characters. A compressed body must be decompressed first.
 */
export function wordsInBody(body: Uint8Array): ReadonlySet<string> {
  const text = unescaped(textOf(body)).toUpperCase()
  return new Set((text.match(UPPER_WORD) ?? []).filter(({ length }) => length >= LENGTH_MIN && length <= LENGTH_MAX))
}

/** A string of JSON, with the colon of a member's name; a bracket; or what stands outside of strings, such as a number. */
const TOKEN = /"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?|[{}[\]]|[^"{}[\],:]+/gs
const INSTANT = /\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?/g
const LITERALS = new Set(['true', 'false', 'null'])
/** Members of events and answers whose values are instants, enumerations or languages. */
const FIXED = new Set(['status', 'detailedStatus', 'eventTime', 'eventTimestamp', 'distributionType', 'displayToConsumer', 'languageCode'])

/** `named`: the identifiers that the body names. `isUnclear`: it may name one, as a part of a longer word. */
interface NamesInBody {
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
