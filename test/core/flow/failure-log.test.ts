import { expect, test } from 'vitest'
import { createFailureLog } from '../../../src/core/flow/log-digest.ts'
import { createLogBook } from '../../support/runner/log-book.ts'

test('repeated failures of one kind are logged once in ten seconds', () => {
  const { log, lines } = createLogBook()
  let nowMs = 0
  const failures = createFailureLog({ log, clock: { monotonic: () => nowMs } })
  for (; nowMs < 20_000; nowMs += 1000) {
    failures.add('error', { err: new Error('the database is away') }, 'a commit failed')
    failures.add('warn', { err: new Error('the database is away') }, 'a request failed')
    if (nowMs > 14_000) failures.add('error', { err: new Error('the disk is full') }, 'a commit failed')
  }
  const shown = lines
    .filter(({ level }) => level !== 'debug')
    .map(({ level, message, fields }) => `${level} ${message} ${JSON.stringify(Object.keys(fields))}`)
  expect(shown).toHaveLength(5)
  expect(shown.filter((line) => line.startsWith('error'))).toHaveLength(3)
  expect(lines).toHaveLength(45)
})
