import { expect, test } from 'vitest'
import { createExpiredPushWarning } from '../../../../src/core/flow/log-digest.ts'
import { createLogBook } from '../../../support/runner/log-book.ts'

function open() {
  let nowMs = 0
  const { log, lines } = createLogBook()
  const tell = createExpiredPushWarning({ log, monotonic: () => nowMs })
  return {
    lines,
    tell,
    pass: (ms: number) => {
      nowMs += ms
    },
  }
}

test('5.4: a warning says that most pushes are too old, probably because of the clock', () => {
  const { lines, tell, pass } = open()
  tell('recorded', 3)
  tell('expired', 4)
  tell('expired', 100)
  pass(60_000)
  tell('recorded', 1)
  tell('expired', 50)
  expect(lines.map(({ level, fields }) => [level, fields])).toEqual([
    ['warn', { expired: 4, kept: 7 }],
    ['warn', { expired: 50, kept: 51 }],
  ])
  for (const { message } of lines) expect(message).toContain('is the clock of this machine right?')
})

test('a few old pushes among many are reported without mention of the clock', () => {
  const { lines, tell } = open()
  tell('signature_invalid', 100)
  tell('storage_unavailable', 100)
  tell('duplicate', 10)
  tell('expired', 1)
  expect(lines.map(({ fields }) => fields)).toEqual([{ expired: 1, kept: 11 }])
  expect(lines[0]?.message).not.toContain('clock')
})
