import { describe, expect, test } from 'vitest'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { aPoll, pushBody } from '../../../support/history/builders.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openWithPushHealth } from '../../../support/store/push-health-store.ts'
import { incomingPush } from '../../../support/store/write-side.ts'

const WAIT_MS = 40 * MINUTE_MS

/** Opens a store with a parcel whose last poll got a `Retry-After`. */
async function refused(engine: Engine) {
  const world = await openWithPushHealth(engine)
  const { writes, stateOf, now } = world
  const observation = aPoll({ asked: 'AB123456789SE', trackingIds: ['1001'], askedAtMs: NOON - DAY_MS })
  await writes.record([{ kind: 'poll', observation, watch: true }])
  const { parcelId } = await stateOf('1001')
  const fail = (retryAfterMs?: number) =>
    writes.notePollFailure({
      parcelId,
      kind: 'unusable',
      atMs: now(),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    })
  await fail(WAIT_MS)
  return { ...world, fail, nextPollAtMs: async () => (await stateOf('1001')).nextPollAtMs }
}

describe.each(engines)('a parcel whose poll got a Retry-After, on $name', (engine) => {
  test('6.4: still waits its whole Retry-After when pushes fall silent', async () => {
    const { writes, become, now, nextPollAtMs } = await refused(engine)
    await writes.settleMissedPushes(now())
    become('silent')
    await writes.settleMissedPushes(now())
    expect(await nextPollAtMs()).toBe(NOON + WAIT_MS)
  })

  test('6.4: still waits its whole Retry-After when it is pushed', async () => {
    const { writes, pass, nextPollAtMs } = await refused(engine)
    const nowMs = pass(MINUTE_MS)
    const body = pushBody({ trackingIds: ['1001'], status: 'DeliveryStarted', eventTime: new Date(nowMs).toISOString() })
    await writes.record([incomingPush(body, nowMs)])
    expect(await nextPollAtMs()).toBe(NOON + WAIT_MS)
  })

  test('6.4: still waits its whole Retry-After when it is watched again', async () => {
    const { writes, pass, nextPollAtMs } = await refused(engine)
    await writes.watch({ identifier: '1001', nowMs: pass(MINUTE_MS) })
    expect(await nextPollAtMs()).toBe(NOON + WAIT_MS)
  })

  test('6.1, 6.4: waits at most an hour if the clock is put back by a day', async () => {
    const { writes, pass, nextPollAtMs } = await refused(engine)
    const nowMs = pass(-DAY_MS)
    await writes.watch({ identifier: '1001', nowMs })
    expect(await nextPollAtMs()).toBeLessThanOrEqual(nowMs + HOUR_MS)
  })

  test('6.4: waits no longer than usual after a later failure without a Retry-After', async () => {
    const { fail, pass, nextPollAtMs } = await refused(engine)
    const failedMs = pass(MINUTE_MS)
    await fail()
    const next = (await nextPollAtMs()) ?? 0
    expect(next).toBeGreaterThan(failedMs)
    expect(next).toBeLessThan(failedMs + 3 * MINUTE_MS)
  })

  test('6.1: after many failures, waits at most an hour when pushes fall silent', async () => {
    const { fail, writes, become, pass, nextPollAtMs } = await refused(engine)
    for (let times = 0; times < 12; times++) await fail()
    const failedMs = NOON
    expect(await nextPollAtMs()).toBeGreaterThan(failedMs + 3 * HOUR_MS)
    await writes.settleMissedPushes(pass(MINUTE_MS))
    become('silent')
    await writes.settleMissedPushes(pass(MINUTE_MS))
    expect(await nextPollAtMs()).toBeLessThan(failedMs + 1.2 * HOUR_MS)
  })

  test('6.8: stays due since when it was, if a pause of the carrier kept the poll from being made', async () => {
    const { writes, pass, stateOf, now, nextPollAtMs } = await refused(engine)
    pass(2 * WAIT_MS)
    await writes.notePollFailure({ parcelId: (await stateOf('1001')).parcelId, kind: 'not_asked', atMs: now() })
    expect(await nextPollAtMs()).toBe(NOON + WAIT_MS)
  })
})
