import { describe, expect, test } from 'vitest'
import { isToBeRemoved, lookAtUnnamed } from '../../../../src/core/domain/delivery/endpoint-state.ts'
import { endpointState } from '../../../support/delivery/endpoint-state.ts'
import { MINUTE_MS } from '../../../support/runner/constants.ts'

const REMOVE_AFTER_MS = 15 * MINUTE_MS
const state = endpointState({ id: '7' }, { origin: 'config' })
const look = { nowMs: 1000, passedMs: 0, isStarting: false, latestAtMs: 900 as number | null }

describe('7.4: an endpoint that no config names', () => {
  test('its unnamed time is zero at the first check, and then grows by the time between checks', () => {
    const first = lookAtUnnamed(state, null, { ...look, passedMs: MINUTE_MS })
    expect(first).toEqual({ id: '7', sinceMs: 1000, forMs: 0, disabled: null })
    expect(lookAtUnnamed(state, first, { ...look, nowMs: 1e9, passedMs: MINUTE_MS })).toMatchObject({ sinceMs: 1000, forMs: MINUTE_MS })
  })

  test('it stays until its time is over and a replica has loaded a config since it became unnamed', () => {
    const seen = { id: '7', sinceMs: 1000, forMs: REMOVE_AFTER_MS, disabled: null }
    expect(isToBeRemoved({ ...seen, forMs: REMOVE_AFTER_MS - 1 }, 2000, REMOVE_AFTER_MS)).toBe(false)
    expect(isToBeRemoved(seen, 999, REMOVE_AFTER_MS)).toBe(false)
    expect(isToBeRemoved(seen, 1000, REMOVE_AFTER_MS)).toBe(true)
    // Null: no replicas share the store, so no config of another replica can still name the endpoint.
    expect(isToBeRemoved(seen, null, REMOVE_AFTER_MS)).toBe(true)
  })

  test('a config that has just taken effect counts as loaded since the endpoint became unnamed', () => {
    const early = lookAtUnnamed(state, null, { ...look, nowMs: 5000, latestAtMs: 4000 })
    expect(isToBeRemoved(early, 4000, 0)).toBe(false)
    const begun = lookAtUnnamed(state, early, { ...look, nowMs: 5100, latestAtMs: 4900, isStarting: true })
    expect(isToBeRemoved(begun, 4900, 0)).toBe(true)
  })

  test('if it was disabled before, the reason is kept until a config names it again', () => {
    const first = lookAtUnnamed({ ...state, disabled: 'gone' }, null, look)
    expect(lookAtUnnamed({ ...state, disabled: 'unnamed' }, first, look).disabled).toBe('gone')
  })
})
