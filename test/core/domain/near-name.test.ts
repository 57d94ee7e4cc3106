import { expect, test } from 'vitest'
import { nearestName, suggestName } from '../../../src/core/domain/text.ts'

const STATUSES = ['Created', 'Ingested', 'DeliveryStarted', 'DeliverySucceeded']

test.each([
  ['Createt', 'Created'],
  ['deliveryStarted', 'DeliveryStarted'],
  ['Deliverd', 'DeliveryStarted'],
  ['DeliverySucc', 'DeliverySucceeded'],
  ['Lost', null],
])('the nearest name of %s is %s', (written, near) => {
  expect(nearestName(written, STATUSES)).toBe(near)
})

test('a name is suggested only if it is close', () => {
  expect(['Createt', 'Deliverd'].map((written) => suggestName(written, STATUSES))).toEqual(['Created', null])
})
