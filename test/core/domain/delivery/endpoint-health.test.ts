import { describe, expect, test } from 'vitest'
import { type AttemptOutcome, FAILING_MAX_MS } from '../../../../src/core/domain/delivery/delivery.ts'
import {
  addFailingTime,
  clampHealthToClock,
  type EndpointHealth,
  healthAfter,
  isProbeDue,
  newHealth,
  probeLooks,
  resetHealth,
  shouldProbe,
  startProbing,
  tryChanged,
  wakeWaiting,
} from '../../../../src/core/domain/delivery/endpoint-health.ts'
import { HOUR_MS } from '../../../support/runner/constants.ts'

const NOW = Date.parse('2026-03-01T12:00:00Z')
const accepted: AttemptOutcome = { kind: 'accepted', status: 200 }
const refused: AttemptOutcome = { kind: 'rejected', status: 500, retryAfterMs: null }
const interrupted: AttemptOutcome = { kind: 'failed', reason: 'interrupted', detail: '' }

const failedAt = (...parcels: readonly number[]): EndpointHealth =>
  parcels.reduce((health, parcelId) => healthAfter(health, { parcelId, outcome: refused, atMs: NOW }, NOW), newHealth)

/** Makes `times` failed probes, each when it is due. Returns the health of the endpoint and the pauses before the probes. */
function probedInVain(times: number, outcome = refused): { readonly health: EndpointHealth; readonly pausesMs: readonly number[] } {
  let health = startProbing(failedAt(1, 2, 3, 4, 5), refused, NOW)
  const pausesMs = [health.probing?.atMs ?? 0].map((atMs) => atMs - NOW)
  for (let nth = 0; nth < times; nth++) {
    const atMs = health.probing?.atMs ?? 0
    health = healthAfter(health, { parcelId: nth, outcome, atMs }, atMs)
    pausesMs.push((health.probing?.atMs ?? 0) - atMs)
  }
  return { health, pausesMs }
}

describe('an endpoint starts to fail', () => {
  test('7.4: when its last five attempts failed, over five parcels', () => {
    expect(shouldProbe(failedAt(1, 2, 3, 4))).toBe('no')
    expect(shouldProbe(failedAt(1, 2, 3, 4, 5))).toBe('yes')
    expect(shouldProbe(startProbing(failedAt(1, 2, 3, 4, 5), refused, NOW))).toBe('no')
  })

  test('7.4: when its last five attempts failed over fewer parcels, if no other parcel waits', () => {
    expect(shouldProbe(failedAt(1, 1, 1, 1, 1))).toBe('ask')
    expect(shouldProbe(failedAt(2, 1, 1, 1, 1, 1))).toBe('ask')
    expect(shouldProbe(failedAt(1, 2, 3, 4, 4))).toBe('ask')
  })

  test('not if one of its last five attempts succeeded; interrupted attempts do not count', () => {
    const healthy = healthAfter(failedAt(1, 2, 3, 4), { parcelId: 5, outcome: accepted, atMs: NOW }, NOW)
    expect(healthy.failedParcels).toEqual([])
    const four = failedAt(1, 2, 3, 4)
    expect(healthAfter(four, { parcelId: 5, outcome: interrupted, atMs: NOW }, NOW)).toBe(four)
  })
})

describe('an endpoint that is failing', () => {
  test('is probed after 5 s, and each failed probe doubles the pause, up to 5 min', () => {
    expect(probedInVain(8).pausesMs).toEqual([5, 10, 20, 40, 80, 160, 300, 300, 300].map((seconds) => seconds * 1000))
  })

  test('is not probed earlier than its Retry-After allows', () => {
    const later: AttemptOutcome = { kind: 'rejected', status: 503, retryAfterMs: 20 * 60_000 }
    expect(probedInVain(1, later).pausesMs).toEqual([5000, 20 * 60_000])
  })

  test('is not paused longer by a failed attempt that began before the probes', () => {
    const { health } = probedInVain(0)
    const late = healthAfter(health, { parcelId: 9, outcome: refused, atMs: NOW - 1 }, NOW + 1000)
    expect(late).toMatchObject({ probing: health.probing, round: health.round })
  })

  test('recovers at its first success, and all its deliveries are due in a new round', () => {
    const { health } = probedInVain(2)
    const woken = healthAfter(health, { parcelId: 1, outcome: accepted, atMs: NOW }, NOW + HOUR_MS)
    expect(woken).toEqual({ ...newHealth, lastSuccessAtMs: NOW + HOUR_MS, round: health.round + 1, wokenAtMs: NOW + HOUR_MS })
  })

  test('stops failing when an operator retries or enables it, which begins a new round', () => {
    const { health } = probedInVain(2)
    expect(wakeWaiting(health, NOW)).toMatchObject({ probing: null, round: health.round + 1, failingSinceMs: NOW })
    expect(resetHealth(health, NOW)).toEqual({ ...newHealth, round: health.round + 1, wokenAtMs: NOW })
  })

  test('is probed at once when its key changes; if it is not failing yet, all deliveries are due', () => {
    const { health } = probedInVain(6)
    expect(tryChanged(health, NOW)).toEqual({ ...health, probing: { ...health.probing, atMs: NOW } })
    expect(tryChanged(failedAt(1, 2), NOW)).toMatchObject({ round: newHealth.round + 1, wokenAtMs: NOW, failingSinceMs: NOW })
    expect(tryChanged(newHealth, NOW)).toBe(newHealth)
  })

  test('O15: is probed within its pause even if the clock is put back by a day', () => {
    const { health } = probedInVain(8)
    const dayBefore = (health.probing?.atMs ?? 0) - 24 * HOUR_MS
    expect(isProbeDue({ atMs: health.probing?.atMs ?? 0 }, dayBefore)).toBe(true)
    const shifted = clampHealthToClock(health, dayBefore)
    expect((shifted.probing?.atMs ?? 0) - dayBefore).toBe(5 * 60_000)
  })
})

describe('the next probe of a failing endpoint', () => {
  const refusal: AttemptOutcome = { kind: 'rejected', status: 401, retryAfterMs: null }
  const timesOf = (health: EndpointHealth, nowMs = NOW) => probeLooks(health, nowMs).map(({ atMs }) => (atMs - NOW) / 1000)

  test('may use any waiting delivery when the pause is over', () => {
    expect(probeLooks(newHealth, NOW)).toEqual([])
    const { health } = probedInVain(3)
    const atMs = health.probing?.atMs ?? 0
    expect(probeLooks(health, atMs - 1)).toEqual([{ atMs, exceptParcelIds: [], beforeRound: null }])
    expect(probeLooks(health, atMs + 1)).toEqual([{ atMs: atMs + 1, exceptParcelIds: [], beforeRound: null }])
  })

  test('comes sooner with a delivery that was not refused yet, while the endpoint answers 4xx', () => {
    const failing = startProbing(failedAt(1, 2, 3, 4, 5), refusal, NOW)
    const probed = [6, 7].reduce((health, parcelId) => {
      const atMs = health.probing?.atMs ?? 0
      return healthAfter(health, { parcelId, outcome: refusal, atMs }, atMs)
    }, failing)
    expect(timesOf(probed, NOW + 15_000)).toEqual([20, 35])
    expect(probeLooks(probed, NOW + 15_000)[0]).toMatchObject({ beforeRound: failing.round })
  })

  test('comes at once with a parcel that did not fail, while few parcels have failed', () => {
    const [others, ...rest] = probeLooks(startProbing(failedAt(1, 1, 1, 2, 2), refused, NOW), NOW)
    expect(others).toEqual({ atMs: NOW, exceptParcelIds: [1, 2], beforeRound: null })
    expect(rest).toMatchObject([{ atMs: NOW + 5000, exceptParcelIds: [] }])
  })
})

describe('the last success of an endpoint', () => {
  const successAt = (health: EndpointHealth, nowMs: number) => healthAfter(health, { parcelId: 1, outcome: accepted, atMs: nowMs }, nowMs)

  test('is saved once a second while the endpoint is healthy', () => {
    const first = successAt(newHealth, NOW)
    expect(successAt(first, NOW + 999)).toBe(first)
    expect(successAt(first, NOW + 1000).lastSuccessAtMs).toBe(NOW + 1000)
  })

  test('is saved at once if it ends a failure', () => {
    const failed = healthAfter(successAt(newHealth, NOW), { parcelId: 1, outcome: refused, atMs: NOW }, NOW + 1)
    expect(successAt(failed, NOW + 2)).toMatchObject({ lastSuccessAtMs: NOW + 2, failingSinceMs: null })
  })

  test('is not later than the clock after the clock was put back', () => {
    expect(successAt(successAt(newHealth, NOW), NOW - 1).lastSuccessAtMs).toBe(NOW - 1)
  })
})

describe('how long an endpoint has been failing', () => {
  test('is the time that the relay has measured, not the difference of two dates', () => {
    const first = addFailingTime(newHealth, refused, 10_000)
    expect(first.failedForMs).toBe(0)
    const since2020 = healthAfter(first, { parcelId: 1, outcome: refused, atMs: 0 }, Date.parse('2020-01-01T00:00:00Z'))
    const later = addFailingTime(since2020, refused, 5000)
    expect(later.failedForMs).toBe(5000)
  })

  test('grows by at most an hour per failure, and only by failures that the endpoint caused', () => {
    const failing = failedAt(1)
    expect(addFailingTime(failing, refused, FAILING_MAX_MS).failedForMs).toBe(HOUR_MS)
    expect(addFailingTime(failing, refused, -5).failedForMs).toBe(0)
    expect(addFailingTime(failing, interrupted, HOUR_MS)).toBe(failing)
  })

  test('counts from the first failure since the last success', () => {
    const day = addFailingTime(failedAt(1), refused, HOUR_MS)
    expect(day.failingSinceMs).toBe(NOW)
    const healthy = healthAfter(day, { parcelId: 1, outcome: accepted, atMs: NOW }, NOW + 1)
    expect(healthy).toMatchObject({ lastSuccessAtMs: NOW + 1, failingSinceMs: null, failedForMs: 0 })
  })
})
