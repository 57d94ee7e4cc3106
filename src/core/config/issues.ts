import type { z } from 'zod'
import { suggestName } from '../domain/text.ts'
import { type Finding, isPlainName, offsetOf, type Path, type Source } from './source.ts'

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
