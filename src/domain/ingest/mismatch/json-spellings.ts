import { isObject } from '../../json-body.ts'
import { EVENT_MEMBERS } from '../event-members.ts'

/** A JSON text of a value. `how`: a description of its notation, for the explanation. */
export interface JsonSpelling {
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
export function* jsonSpellings(value: unknown): Generator<JsonSpelling, undefined> {
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
