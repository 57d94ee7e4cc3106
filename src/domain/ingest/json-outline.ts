/** A part of a text: from offset `from` (inclusive) to offset `to` (exclusive), in UTF-16 code units. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** The positions of the parts of a JSON text. */
export interface JsonOutline {
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
