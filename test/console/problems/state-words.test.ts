import { expect, test } from 'vitest'
import { carrierStateWords, pushStateWords } from '../../../src/console/problems/explain-problem.ts'
import { WELL } from '../../support/portal/situation.ts'

const refusing = { ...WELL, notReady: ['disk_full: no room'] }

test('a relay that refuses pushes does not call them healthy, nor the carrier answering', () => {
  expect([pushStateWords(WELL).words, carrierStateWords(WELL).words]).toEqual(['arriving', 'the last call was answered'])
  expect([pushStateWords(refusing), carrierStateWords(refusing)]).toEqual([
    { tone: 'bad', words: 'refused' },
    { tone: 'off', words: 'not polled' },
  ])
})

test('a carrier whose calls pause, or that refuses the password, is in a bad state', () => {
  const open = { ...WELL.carrier, breaker: { state: 'open', failures: 20, restMs: 5000 } } as const
  expect(carrierStateWords({ ...WELL, carrier: open })).toEqual({ tone: 'bad', words: 'failing, calls pause' })
  const refused = { ...WELL.carrier, credentials: 'refused' } as const
  expect(carrierStateWords({ ...WELL, carrier: refused })).toEqual({ tone: 'bad', words: 'refuses our password' })
})
