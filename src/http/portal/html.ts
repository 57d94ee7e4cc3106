// A template tag for HTML. It escapes each value, and refuses a template with a value where escaping does not protect.

const made = Symbol('markup')

/** Markup that goes into a page unescaped. `html` makes it, or `markup` from our own text. Text from outside can never become markup. */
export interface Markup {
  readonly [made]: string
}

/** A value in a template. Null, undefined and false write nothing. */
export type Part = string | number | null | undefined | false | Markup | readonly Part[]

/** Takes our own text as markup, such as a drawn shape. Never pass text that was received, read or configured. */
export function markup(text: string): Markup {
  return { [made]: text }
}

/** The characters of a page or of a part of one. */
export function charactersOf(part: Markup): string {
  return part[made]
}

/**
 * Makes markup of a template. It takes texts, numbers and markup between tags; texts and numbers in a quoted attribute; and only markup
 * between attributes, for attributes that may be absent. Throws a `TypeError` for a value anywhere else: in the name of a tag or an
 * attribute, in an attribute without quotes, in a comment, a script or a style.
 */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  const contexts = contextsOf(texts)
  return markup(texts.map((text, at) => text + (at < parts.length ? put(parts[at], contexts[at]) : '')).join(''))
}

/** The context of a part in its template. */
type Context = 'text' | 'quoted' | 'tag'

function put(part: Part, context: Context | undefined): string {
  if (part === null || part === undefined || part === false) return ''
  if (typeof part === 'object' && !(made in part)) return part.map((each) => put(each, context)).join('')
  if (typeof part === 'object') {
    if (context === 'quoted') throw new TypeError('Markup does not belong in an attribute.')
    return part[made]
  }
  if (context === 'tag') throw new TypeError('Between attributes only markup is taken.')
  return escapeHtml(String(part))
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Text as it is written in HTML, between tags or in a quoted attribute. */
function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '')
}

const known = new WeakMap<TemplateStringsArray, readonly Context[]>()

/** The context of each part. A template is read once, however often it is used. */
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
 * The state of reading a template. `name`: in a tag, before its first space. `tag`: between its attributes. `bare`: in an attribute without
 * quotes. `other`: in a script, a style or a comment, where an escaped text would mean something else.
 */
interface State {
  readonly in: 'text' | 'name' | 'tag' | 'bare' | 'quoted' | 'other'
  /** The name of the tag that is open, or of the element whose content is read. */
  readonly element: string
}

const TAG = /^<(!--|\/?[a-z][a-z0-9]*|!doctype)/i
const ENDS: Readonly<Record<string, RegExp>> = { script: /^<\/script/i, style: /^<\/style/i, '!--': /^-->/ }

function follow(begun: State, text: string): State {
  let state = begun
  for (let at = 0; at < text.length; at++) state = step(state, text.slice(at))
  return state
}

/** Reads the first character of `rest`. */
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

function contextAt(state: State, text: string): Context {
  if (state.in === 'text' || state.in === 'quoted' || state.in === 'tag') return state.in
  // The markup of an attribute begins with its space, so it may follow a name: `<h1${lang}>`.
  if (state.in === 'name' && /<[a-z][a-z0-9]*$/i.test(text)) return 'tag'
  throw new TypeError('A template cannot be filled in inside a name, an attribute without quotes, a comment, a script or a style.')
}
