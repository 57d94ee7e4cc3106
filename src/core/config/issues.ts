import { isMap, isNode, isScalar, isSeq } from 'yaml'
import type { z } from 'zod'
import { suggestName } from '../domain/text.ts'
import { REDACTED } from './secret.ts'
import { type Finding, formatPath, isPlainName, keyName, offsetOf, type Path, pairAt, type Source } from './source.ts'

export function findingsOf(issues: readonly z.core.$ZodIssue[], values: unknown, schema: unknown, source: Source): readonly Finding[] {
  return issues.flatMap((issue): Finding[] => {
    if (issue.code === 'unrecognized_keys') {
      const known = knownKeys(schema, issue.path)
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
