import { expect, test } from 'vitest'
import { marksOf } from '../../../src/console/portal/serve-page.ts'
import type { Glance } from '../../../src/console/problems/verdict.ts'
import { WELL } from '../../support/portal/situation.ts'

const fine: Glance = WELL

test('a page without problems has no mark', () => {
  expect(marksOf(fine)).toEqual({})
})

test('each problem is named beside its page, and the overview counts all of them', () => {
  const silent = { ...fine, pushes: { ...fine.pushes, health: 'silent' as const }, counts: { quarantined: 1204 } }
  expect(marksOf(silent)).toEqual({ overview: ['bad', '2 problems'], inbox: ['bad', '1,204 quarantined'], carrier: ['bad', 'silent'] })
})

test('a problem that can wait is not marked as an alarm', () => {
  const held = (quarantined: number) => marksOf({ ...fine, counts: { quarantined } })
  expect(held(9)).toEqual({ overview: ['warn', '1 problem'], inbox: ['warn', '9 quarantined'] })
  expect(held(10)).toEqual({ overview: ['bad', '1 problem'], inbox: ['bad', '10 quarantined'] })
})
