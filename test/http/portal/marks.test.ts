import { expect, test } from 'vitest'
import type { Glance } from '../../../src/domain/admin/verdict.ts'
import { marksOf } from '../../../src/http/portal/marks.ts'

const fine: Glance = {
  notReady: [],
  counts: { quarantined: 0 },
  disk: null,
  carrier: {
    credentials: 'accepted',
    lastAnswerAtMs: 1000,
    lastFailure: null,
    refusal: null,
    budget: { waiting: 0, inFlight: 0, callsToday: 1, callsPerDay: 100 },
    breaker: { state: 'closed', failures: 0, restMs: 0 },
  },
  pushes: {
    health: 'healthy',
    loss: 0,
    lastPushAtMs: 1000,
    missedSincePush: 0,
    silence: null,
    missed: { count: 0, sinceMs: 0, lastFoundAtMs: null },
  },
  endpoints: [],
  replicas: [],
}

test('nothing stands beside what works', () => {
  expect(marksOf(fine)).toEqual({})
})

test('each trouble has a word beside its page, and all are counted beside the overview', () => {
  const silent = { ...fine, pushes: { ...fine.pushes, health: 'silent' as const }, counts: { quarantined: 1204 } }
  expect(marksOf(silent)).toEqual({ overview: ['bad', '2 problems'], inbox: ['warn', '1,204 quarantined'], carrier: ['bad', 'silent'] })
})

test('what can wait is no alarm', () => {
  expect(marksOf({ ...fine, counts: { quarantined: 1 } }).overview).toEqual(['warn', '1 problem'])
})
