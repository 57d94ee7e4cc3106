import { offsetOf, parseSource, valuesOf } from '../../core/config/source.ts'
import { counted } from '../../core/domain/amounts.ts'
import { isObject, member } from '../../core/domain/json-body.ts'

/** Rules as somebody has written them, unchecked. */
export interface WrittenRules {
  readonly rules: readonly unknown[]
  /** Returns the line of what a JSON pointer into the rules names. */
  readonly lineOf: (pointer: string) => number
}

/** Reads YAML with a list of rules, or with such a list under `watchdogs`. A sentence: it cannot be read. */
export function readRules(text: string): WrittenRules | string {
  const source = parseSource(text)
  const lineAt = (offset: number) => Math.max(1, source.lines.linePos(offset).line)
  const [finding] = source.findings
  if (finding !== undefined) return `Line ${lineAt(finding.offset)}: ${finding.message}.`
  const read = valuesOf(source)
  if ('problem' in read) return `The rules cannot be read: ${read.problem}.`
  const under = isObject(read.values) ? member(read.values, 'watchdogs') : undefined
  const rules = under ?? read.values
  if (!Array.isArray(rules))
    return 'Write a list of rules, each on a line such as "- { name, when, notWithin }", or such a list under watchdogs.'
  const base = under === undefined ? [] : ['watchdogs']
  const lineOf = (pointer: string) => {
    const path = pointer
      .split('/')
      .slice(1)
      .map((name) => (/^\d+$/.test(name) ? Number(name) : name))
    return lineAt(offsetOf(source, [...base, ...path], 'value'))
  }
  return { rules, lineOf }
}

/** Says how often each rule would have found a parcel stalled, also of one that found none. */
export function countsByRule(rules: readonly unknown[], breaches: readonly { readonly rule: string }[]): readonly string[] {
  const found = Map.groupBy(breaches, ({ rule }) => rule)
  const names = rules.map((rule) => String(isObject(rule) ? member(rule, 'name') : ''))
  return names.map((name) => `${name}: ${counted(found.get(name)?.length ?? 0, 'time', 'times')}`)
}
