import { type Document, isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml'
import type { z } from 'zod'
import { suggestName } from '../domain/text.ts'
import { REDACTED } from './secret.ts'

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

/**
 * Finds a member of a map by its key, or an item of a sequence by its index; null: there is none. If a key is repeated, finds its last member.
 * An item has no key, so it is returned as both key and value.
 */
function pairAt(node: unknown, segment: PropertyKey, document: Document): { readonly key: unknown; readonly value: unknown } | null {
  const target = isAlias(node) ? node.resolve(document) : node
  if (isMap(target)) return target.items.findLast(({ key }) => keyName(key) === String(segment)) ?? null
  if (!isSeq(target) || typeof segment !== 'number') return null
  const item = target.items[segment]
  return item === undefined ? null : { key: item, value: item }
}

function keyName(key: unknown): string {
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
function formatPath(path: Path): string {
  return path.reduce<string>((text, segment) => {
    if (typeof segment === 'number') return `${text}[${segment}]`
    const name = isPlainName(String(segment)) ? String(segment) : '(unusual name)'
    return text === '' ? name : `${text}.${name}`
  }, '')
}

function isPlainName(name: string): boolean {
  return /^[A-Za-z][\w-]{0,39}$/.test(name)
}

/** `schema`: makes the JSON Schema, whose keys are told in place of one that is not known. */
export function findingsOf(issues: readonly z.core.$ZodIssue[], values: unknown, schema: () => object, source: Source): readonly Finding[] {
  return issues.flatMap((issue): Finding[] => {
    if (issue.code === 'unrecognized_keys') {
      const known = knownKeys(schema(), issue.path)
      return issue.keys.map((key) => {
        const path = [...issue.path, key]
        return { severity: 'problem', offset: offsetOf(source, path, 'key'), path, message: describeUnknown(key, known) }
      })
    }
    const isWarning = issue.code === 'custom' && issue.params?.warning === true
    const message = isWarning ? issue.message : describe(issue, valueAt(values, issue.path))
    const unsetVariable: unknown = issue.code === 'custom' ? issue.params?.unsetVariable : undefined
    return [
      {
        severity: isWarning ? 'warning' : 'problem',
        offset: offsetOf(source, issue.path, 'value'),
        path: issue.path,
        message,
        ...(typeof unsetVariable === 'string' ? { unsetVariable } : {}),
      },
    ]
  })
}

export function unknownPaths(issues: readonly z.core.$ZodIssue[]): readonly Path[] {
  return issues.flatMap((issue) => (issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : []))
}

function describe(issue: z.core.$ZodIssue, value: unknown): string {
  if (value === undefined) return `is missing; it ${issue.message}`
  if (value === null) return `is empty; it ${issue.message}, or remove the key`
  const isQuotedNumber = typeof value === 'string' && /^-?\d+(?:\.\d+)?$/.test(value)
  const wantsNumber = issue.code === 'invalid_type' && ['number', 'int'].includes(issue.expected)
  return isQuotedNumber && wantsNumber ? `${issue.message}, but is text: remove the quotes` : issue.message
}

function describeUnknown(key: string, known: readonly string[]): string {
  if (!isPlainName(key)) return `is not a valid key; the keys here are ${known.join(', ')} (is a space missing after a colon?)`
  const near = suggestName(key, known)
  return near === null ? `is not a known key; the keys here are ${known.join(', ')}` : `is not a known key; did you mean ${near}?`
}

/** Returns the value at a path. Inherited members do not count. */
export function valueAt(values: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, segment) => {
    return typeof value === 'object' && value !== null && Object.hasOwn(value, segment) ? Reflect.get(value, segment) : undefined
  }, values)
}

/** What is wrong with a setting, beside its schema. */
export interface Complaint {
  readonly path: Path
  readonly message: string
}

/** Complains about items of a list of which this key is the same as that of an earlier one. */
export function repeated(values: unknown, section: string, key: string): readonly Complaint[] {
  const items = valueAt(values, [section])
  if (!Array.isArray(items)) return []
  const names = items.map((item: unknown) => valueAt(item, [key]))
  return names.flatMap((name, index) => {
    const first = names.indexOf(name)
    return typeof name !== 'string' || first === index
      ? []
      : [{ path: [section, index, key], message: `is the same as in ${section}[${first}]: each must be unique` }]
  })
}

function knownKeys(schema: unknown, path: Path): readonly string[] {
  const at = path.flatMap((segment) => (typeof segment === 'number' ? ['items'] : ['properties', segment]))
  const properties = valueAt(schema, [...at, 'properties'])
  return typeof properties === 'object' && properties !== null ? Object.keys(properties) : []
}

// Shows a finding with its line and a caret. Findings are copied to logs and tickets, so everything that may be a secret is masked. In readable
// YAML, the values of secret settings and of unknown keys are masked. (An unknown key may be a mistyped secret setting.) In unreadable YAML,
// everything is masked that does not clearly belong to a setting without a secret.

const SECRET_KEYS = ['password', 'passwordHash', 'sharedKey', 'sharedKeys', 'atRestKeys', 'headers']
const WIDTH = 120

/** A part of the file's text. `to` is the offset after its last character. */
type Span = readonly [from: number, to: number]

/** Returns the spans to mask in readable YAML. `unknown`: the paths of its unknown keys. */
export function maskedSpans(source: Source, unknown: readonly Path[]): readonly Span[] {
  const spans: Span[] = []
  const walk = (node: unknown) => {
    if (isSeq(node)) node.items.forEach(walk)
    if (!isMap(node)) return
    for (const { key, value } of node.items) {
      if (isSecretKey(keyName(key))) spans.push(...spansOfSecret(value))
      else walk(value)
    }
  }
  walk(source.document.contents)
  for (const path of unknown) spans.push(...spansOfUnknown(source, path))
  for (const match of source.text.matchAll(/:\/\/([^\s"']+)@/g)) spans.push([match.index + 3, match.index + 3 + (match[1] ?? '').length])
  return spans
}

function isSecretKey(name: string): boolean {
  return suggestName(name, SECRET_KEYS) !== null
}

function spansOfSecret(node: unknown): Span[] {
  if (isSeq(node)) return node.items.flatMap(spansOfSecret)
  if (!isMap(node)) return spanOf(node)
  return node.items.flatMap(({ key, value }) => {
    const tellsWhere = isScalar(value) && ['env', 'file'].includes(keyName(key))
    return tellsWhere ? [] : [...spanOf(key), ...spanOf(value)]
  })
}

function spansOfUnknown(source: Source, path: Path): Span[] {
  let member = pairAt(source.document.contents, path[0] ?? '', source.document)
  for (const segment of path.slice(1)) member = member === null ? null : pairAt(member.value, segment, source.document)
  if (member === null) return []
  return isPlainName(keyName(member.key)) ? spanOf(member.value) : [...spanOf(member.key), ...spanOf(member.value)]
}

function spanOf(node: unknown): Span[] {
  return isNode(node) && node.range ? [[node.range[0], node.range[1]]] : []
}

function maskedInLine(line: string, offset: number): readonly Span[] {
  const end = offset + line.length
  const [start = ''] = /^[\s-]*/.exec(line) ?? []
  if (!/^[\s-]*[{[]?\s*["']?[A-Za-z]\w*["']?\s*:/.test(line)) return [[offset + start.length, end]]
  for (const match of line.matchAll(/([A-Za-z][\w-]*)["']?\s*:/g)) {
    if (isSecretKey(match[1] ?? '')) return [[offset + match.index + match[0].length, end]]
  }
  return []
}

/** Presents a finding in three lines: `file:line:column path: message`, the line of the file, and a caret below the error. */
export function presentFinding(file: string, source: Source, finding: Finding, masks: readonly Span[]): string {
  const { line, col } = source.lines.linePos(finding.offset)
  const number = Math.max(line, 1)
  const lineStart = source.lines.lineStarts[number - 1] ?? 0
  const written = source.text.slice(lineStart).split(/\r?\n/, 1)[0] ?? ''
  const spans = source.readable ? masks : maskedInLine(written, lineStart)
  const shown = maskLine(written, lineStart, spans, finding.offset)
  const path = formatPath(finding.path)
  const gutter = String(number)
  return [
    `${file}:${number}:${Math.max(col, 1)} ${path === '' ? '' : `${path}: `}${finding.message}`,
    `  ${gutter} | ${shown.text}`,
    `  ${' '.repeat(gutter.length)} | ${' '.repeat(shown.caret)}^`,
  ].join('\n')
}

function maskLine(line: string, lineStart: number, spans: readonly Span[], offset: number) {
  let [text, caret] = ['', -1]
  for (let index = 0; index < line.length; index++) {
    const at = lineStart + index
    const isMasked = spans.some(([from, to]) => at >= from && at < to)
    if (isMasked && !text.endsWith(REDACTED)) text += REDACTED
    if (at === offset) caret = isMasked ? text.length - REDACTED.length : text.length
    // Replace control characters, because they could move the terminal's cursor.
    if (!isMasked) text += line[index]?.replace(/\p{Cc}/u, ' ') ?? ''
  }
  const column = caret === -1 ? text.length : caret
  const from = column < WIDTH - 20 ? 0 : column - WIDTH / 2
  return { text: text.slice(from, from + WIDTH).trimEnd(), caret: column - from }
}
