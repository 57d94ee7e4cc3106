import { expect, test } from 'vitest'
import { addVerdict, assessPushHealth } from '../../src/domain/push-health.ts'

const after = (...runs: readonly (readonly [count: number, pushed: boolean])[]) =>
  assessPushHealth(
    runs.flatMap(([count, pushed]) => Array.from({ length: count }, () => pushed)).reduce(addVerdict, [] as readonly boolean[]),
  )

test('6.1: the health of the push channel is unknown before any push', () => {
  expect(after()).toBe('unknown')
  expect(after([5, false])).toBe('unknown')
  expect(after([19, true])).toBe('unknown')
})

test('pushes that all came are healthy, and one lost in ten is lossy', () => {
  expect(after([20, true])).toBe('healthy')
  expect(after([100, true], [10, false])).toBe('lossy')
})

test('what happened long ago is forgotten', () => {
  expect(after([100, false], [200, true])).toBe('healthy')
})
