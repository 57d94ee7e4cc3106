import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { EVENT_NAMES } from '../support/portal/documented-kinds.ts'

const [, ...sections] = readFileSync('docs/runbooks.md', 'utf8').split(/^### /m)
const runbooks = sections.map((section) => {
  const [title = '', ...lines] = section.split('\n')
  return { title, parts: [...lines.join('\n').matchAll(/^\*\*(.+?):\*\*/gm)].map(([, part]) => part) }
})

test('every operator event has one runbook with its name, and every runbook an event', () => {
  const names = runbooks.flatMap(({ title }) => /^`(\w+)`$/.exec(title)?.[1] ?? [])
  expect(names.toSorted()).toEqual(EVENT_NAMES.toSorted())
})

test('every runbook says what it means, where to look, what to do, and when it is over', () => {
  expect(runbooks.length).toBeGreaterThan(EVENT_NAMES.length)
  expect(runbooks.filter(({ parts }) => parts.join() !== 'Means,Look at,Do,Over')).toEqual([])
})
