import { type Document, isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml'

export interface Source {
  readonly text: string
  readonly document: Document
  readonly lines: LineCounter
  /** Problems with the YAML, not with the settings. */
  readonly findings: readonly Finding[]
  /** Whether the YAML can be read well enough to check the settings. */
  readonly readable: boolean
}

// Our own message for each code of the parser, because the parser's messages may repeat a secret.
const SYNTAX: Readonly<Record<string, string>> = {
  BAD_ALIAS: 'text that begins with * must be in quotes, as in "* * * * *"',
  BAD_DQ_ESCAPE: 'a backslash in double quotes must begin a known escape: double it, or use single quotes',
  BAD_INDENT: 'the indentation does not fit the lines above: align it with its neighbours',
  BAD_SCALAR_START: 'text that begins with @, `, % or another reserved character must be in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a second "key: value" is not allowed here: check the indentation, or put text that contains ": " in quotes',
  DUPLICATE_KEY: 'the same key appears above: remove one of them',
  MISSING_CHAR: 'a closing quote, bracket, comma or colon is missing',
  MULTILINE_IMPLICIT_KEY: 'a "key: value" was expected: is there a space after the colon?',
  MULTIPLE_DOCS: 'only one document is read: remove the --- and what follows',
  TAB_AS_INDENT: 'a tab cannot indent: use spaces',
  TAG_RESOLVE_FAILED: 'text that begins with ! must be in quotes',
  UNEXPECTED_TOKEN: 'this is not expected here: check brackets, commas and indentation, and put unusual text in quotes',
}

/** The message for an unclosed brace or bracket, which the parser reports as a line with too little indentation. */
const UNCLOSED = 'a closing } or ] is missing before this'

const MENDABLE = new Set(['DUPLICATE_KEY'])
const ALIASES_MAX = 50

/** Reads YAML 1.2. Never throws. */
export function parseSource(text: string): Source {
  const lines = new LineCounter()
  const document = parseDocument(text, { version: '1.2', uniqueKeys: true, prettyErrors: false, lineCounter: lines })
  const faults = [...document.errors, ...document.warnings]
  const findings = faults.map(({ code, pos, message }): Finding => {
    const isUnclosed = code === 'BAD_INDENT' && message.startsWith('Flow ')
    return {
      severity: 'problem',
      offset: pos[0],
      path: [],
      message: isUnclosed ? UNCLOSED : (SYNTAX[code] ?? 'this is not valid YAML 1.2'),
    }
  })
  let [aliases, dangling] = [0, 0]
  visit(document, {
    Alias(_, alias) {
      aliases += 1
      if (alias.resolve(document) !== undefined) return
      dangling += 1
      findings.push({ severity: 'problem', offset: alias.range?.[0] ?? 0, path: [], message: SYNTAX.BAD_ALIAS ?? '' })
    },
  })
  if (aliases > ALIASES_MAX)
    findings.push({ severity: 'problem', offset: 0, path: [], message: `more than ${ALIASES_MAX} aliases (*name) are refused` })
  const readable = dangling === 0 && aliases <= ALIASES_MAX && faults.every(({ code }) => MENDABLE.has(code))
  return { text, document, lines, findings: firstOfEachLine(findings, lines), readable }
}

/** Keeps the first finding of each line. One mistake may cause several findings; the first of them shows where the mistake is. */
function firstOfEachLine(findings: readonly Finding[], lines: LineCounter): readonly Finding[] {
  const seen = new Set<number>()
  return findings
    .toSorted((a, b) => a.offset - b.offset)
    .filter(({ offset }) => {
      const { line } = lines.linePos(offset)
      return !seen.has(line) && seen.add(line)
    })
}

/** Returns the values of a readable source as plain data, or a problem if its aliases expand to too much. */
export function valuesOf(source: Source): { readonly values: unknown } | { readonly problem: string } {
  try {
    return { values: source.document.toJS({ maxAliasCount: ALIASES_MAX }) ?? {} }
  } catch {
    return { problem: 'its aliases (*name) expand to too much: write the values out' }
  }
}

/** Returns the offset of a setting's value or key. If the setting is missing, returns the offset of the innermost group that exists on its path. */
export function offsetOf(source: Source, path: Path, part: 'key' | 'value'): number {
  let node: unknown = source.document.contents
  let offset = isNode(node) ? (node.range?.[0] ?? 0) : 0
  for (const [index, segment] of path.entries()) {
    const pair = pairAt(node, segment, source.document)
    if (pair === null) return offset
    const isLast = index === path.length - 1
    const shown = isLast && part === 'value' && isNode(pair.value) && !isEmptyScalar(pair.value) ? pair.value : pair.key
    offset = isNode(shown) ? (shown.range?.[0] ?? offset) : offset
    node = pair.value
  }
  return offset
}

export interface Member {
  readonly key: unknown
  readonly value: unknown
}

/**
 * Finds a member of a map by its key, or an item of a sequence by its index; null: there is none. If a key is repeated, finds its last member.
 * An item has no key, so it is returned as both key and value.
 */
export function pairAt(node: unknown, segment: PropertyKey, document: Document): Member | null {
  const target = isAlias(node) ? node.resolve(document) : node
  if (isMap(target)) return target.items.findLast(({ key }) => keyName(key) === String(segment)) ?? null
  if (!isSeq(target) || typeof segment !== 'number') return null
  const item = target.items[segment]
  return item === undefined ? null : { key: item, value: item }
}

export function keyName(key: unknown): string {
  return isScalar(key) ? String(key.value) : String(key)
}

function isEmptyScalar(node: unknown): boolean {
  return isScalar(node) && node.source === ''
}

export type Path = readonly PropertyKey[]

/** A problem or a warning at a position in a config file. With a problem the relay does not start; with a warning it does. */
export interface Finding {
  readonly severity: 'problem' | 'warning'
  /** The position in the text of the file, in characters. */
  readonly offset: number
  readonly path: Path
  /** A text that completes the sentence "this setting ...". It never repeats a value. */
  readonly message: string
  /** The environment variable that is not set, if that is the problem. */
  readonly unsetVariable?: string
}

/** Writes a path such as `apps[0].username`. It does not repeat an unusual name, because somebody may have written a secret in place of a key. */
export function formatPath(path: Path): string {
  return path.reduce<string>((text, segment) => {
    if (typeof segment === 'number') return `${text}[${segment}]`
    const name = isPlainName(String(segment)) ? String(segment) : '(unusual name)'
    return text === '' ? name : `${text}.${name}`
  }, '')
}

export function isPlainName(name: string): boolean {
  return /^[A-Za-z][\w-]{0,39}$/.test(name)
}
