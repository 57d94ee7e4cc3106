// A template tag for HTML. It escapes each value, and throws if a value is in a position where escaping would not make it safe.

const made = Symbol('markup')

/** HTML that goes into a page without escaping. Only `html` and `markup` make it. */
export interface Markup {
  readonly [made]: string
}

/** A value in a template. Null, undefined and false write nothing. */
export type Part = string | number | null | undefined | false | Markup | readonly Part[]

/** Only for text from this source code, such as an SVG shape. Never pass text that was received, read or configured. */
export function markup(text: string): Markup {
  return { [made]: text }
}

export function charactersOf(part: Markup): string {
  return part[made]
}

/**
 * Makes markup of a template. Texts, numbers and markup may stand between tags. Texts and numbers may stand in a quoted attribute. Markup may
 * stand in the place of a whole attribute. Throws a `TypeError` for a value in any other position, such as a tag's name, an attribute without
 * quotes, a comment, a script or a style.
 */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  const contexts = contextsOf(texts)
  return markup(texts.map((text, at) => text + (at < parts.length ? put(parts[at], contexts[at]) : '')).join(''))
}

/** Where a value stands in its template: between tags, where only text may stand, in a quoted attribute, or between attributes. */
type Context = 'text' | 'plain' | 'quoted' | 'tag'

function put(part: Part, context: Context | undefined): string {
  if (part === null || part === undefined || part === false) return ''
  if (typeof part === 'object' && !(made in part)) return part.map((each) => put(each, context)).join('')
  if (typeof part === 'object') {
    if (context === 'quoted') throw new TypeError('Markup does not belong in an attribute.')
    return part[made]
  }
  if (context === 'tag') throw new TypeError('Only markup may stand in the place of an attribute.')
  // The value of a field goes back as it is; what people read shows what it hides.
  if (context === 'quoted') return escapeHtml(String(part))
  const pieces = withMarks(String(part)).split(LONG_WORD)
  return pieces
    .map((text, at) => (at % 2 === 0 || context === 'plain' ? escapeHtml(text) : `<span class="long">${escapeHtml(text)}</span>`))
    .join('')
}

/** Others may write words of any length. The style sheet breaks those that are longer than any identifier, and no others. */
const LONG_WORD = /(\S{41,})/

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Control characters, and characters without width or that change the direction of text: with them, a page could show something else. */
const HIDDEN = /(?![\t\n\r])[\p{Cc}\u{61c}\u{200b}\u{200e}\u{200f}\u{202a}-\u{202e}\u{2060}-\u{2064}\u{2066}-\u{2069}\u{feff}]/gu

/** Shows each hidden character as a mark with its number, such as `⟨U+202E⟩`. */
function withMarks(text: string): string {
  return text.replace(HIDDEN, (character) => `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`)
}

/** Escapes text as it is, for the value of a field. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '')
}

const known = new WeakMap<TemplateStringsArray, readonly Context[]>()

/** Returns the context of each value of a template. Each template is parsed only once. */
function contextsOf(texts: TemplateStringsArray): readonly Context[] {
  const before = known.get(texts)
  if (before !== undefined) return before
  const contexts: Context[] = []
  let state: State = { in: 'text', element: '' }
  for (const text of texts.slice(0, -1)) {
    state = follow(state, text)
    contexts.push(contextAt(state, text))
  }
  known.set(texts, contexts)
  return contexts
}

/**
 * The state of the parser. `name`: in a tag, before its first space. `tag`: between its attributes. `bare`: in the name of an attribute, or
 * in a value without quotes. `other`: in a script, a style or a comment, where HTML escapes do not work.
 */
interface State {
  readonly in: 'text' | 'name' | 'tag' | 'bare' | 'quoted' | 'other'
  /** The name of the tag that was read last, in lower case. */
  readonly element: string
}

const TAG = /^<(!--|\/?[a-z][a-z0-9]*|!doctype)/i
const ENDS: Readonly<Record<string, RegExp>> = { script: /^<\/script/i, style: /^<\/style/i, '!--': /^-->/ }

function follow(begun: State, text: string): State {
  let state = begun
  for (let at = 0; at < text.length; at++) state = step(state, text.slice(at))
  return state
}

/** Returns the state after the first character of `rest`. */
function step(state: State, rest: string): State {
  const character = rest[0] ?? ''
  if (state.in === 'other') return ENDS[state.element]?.test(rest) ? { in: 'name', element: '' } : state
  if (state.in === 'quoted') return character === '"' ? { ...state, in: 'tag' } : state
  if (state.in === 'text') {
    if (character !== '<') return state
    const element = TAG.exec(rest)?.[1]?.toLowerCase() ?? ''
    return { in: element === '!--' ? 'other' : 'name', element }
  }
  if (character === '>') return { ...state, in: state.element in ENDS ? 'other' : 'text' }
  if (character === '"') return { ...state, in: 'quoted' }
  if (/\s/.test(character)) return { ...state, in: 'tag' }
  return state.in === 'name' ? state : { ...state, in: 'bare' }
}

/** Elements that hold text alone, or break it themselves. */
const PLAIN: ReadonlySet<string> = new Set(['title', 'textarea', 'option', 'pre'])

function contextAt(state: State, text: string): Context {
  if (state.in === 'text' && PLAIN.has(state.element)) return 'plain'
  if (state.in === 'text' || state.in === 'quoted' || state.in === 'tag') return state.in
  // An optional attribute brings its own leading space, so its markup may follow the name of the tag: `<h1${lang}>`.
  if (state.in === 'name' && /<[a-z][a-z0-9]*$/i.test(text)) return 'tag'
  throw new TypeError('A value must not stand in a name, an attribute without quotes, a comment, a script or a style.')
}

/** An address of the portal. Every link and form gets its address from here, so that received text can never become an address. */
export interface Address {
  /** From the root of the host, with the prefix of `portal.publicUrl`, for example `/relay/webhooks/3`. */
  readonly path: string
}

/** Makes the address of a page from a template, and encodes each part of the path. */
export type AddressTag = (texts: TemplateStringsArray, ...parts: readonly (string | number)[]) => Address

/** Makes addresses below a prefix, which is empty or like `/relay`. */
export function createAddresses(prefix: string): AddressTag {
  return (texts, ...parts) => ({
    path: prefix + texts.map((text, at) => text + (at < parts.length ? encodeURIComponent(String(parts[at])) : '')).join(''),
  })
}

/** Returns the address with a query. Parameters that are null or empty are left out. */
export function withQuery(address: Address, query: Readonly<Record<string, string | number | null>>): Address {
  const given = Object.entries(query).flatMap(([name, value]) => (value === null || value === '' ? [] : [[name, String(value)] as const]))
  return given.length === 0 ? address : { path: `${address.path}?${new URLSearchParams(Object.fromEntries(given)).toString()}` }
}

/** Makes a link inside the portal. `extra`: markup of more attributes. */
export function link(to: Address, text: string | Markup, extra: Markup | null = null): Markup {
  return html`<a href="${to.path}"${extra}>${text}</a>`
}

/** Makes a link that looks like a button, because it leads to a form. */
export function buttonLink(to: Address, text: string, kind: 'main' | '' = ''): Markup {
  return link(to, text, markup(` class="btn${kind === '' ? '' : ` ${kind}`}"`))
}

/** The most characters of a body that a page shows. The whole body can be downloaded. */
export const SHOWN_MAX = 64 * 1024

/** The relay accepts events up to this depth. Deeper JSON is not indented, because the indentation would make it very long. */
const INDENTED_DEPTH_MAX = 64

/**
 * Returns JSON with each member on its own line, and each name and value exactly as received. Null: the text is not JSON, is longer than a
 * page shows, or is nested too deeply.
 */
export function indentJson(text: string): string | null {
  if (text.length > SHOWN_MAX || !isJson(text)) return null
  const tokens = text.match(/"[^"\\]*(?:\\.[^"\\]*)*"|\[\s*\]|\{\s*\}|[[\]{},:]|[^\s"[\]{},:]+/gs) ?? []
  const pieces: string[] = []
  let depth = 0
  const line = () => `\n${'  '.repeat(depth)}`
  for (const token of tokens) {
    if (token === '[' || token === '{') {
      depth += 1
      if (depth > INDENTED_DEPTH_MAX) return null
      pieces.push(token, line())
    } else if (token === ']' || token === '}') {
      depth -= 1
      pieces.push(line(), token)
    } else if (token === ',') pieces.push(token, line())
    else pieces.push(token === ':' ? ': ' : token)
  }
  return pieces.join('')
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
