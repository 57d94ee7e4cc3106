import { describe, expect, test } from 'vitest'
import { FAILURE_GROUPS_MAX, FAILURES_COUNT_FOR_MS, type FailureNote } from '../../../../src/core/domain/delivery/dispatch-round.ts'
import { viewEndpoint } from '../../../../src/core/flow/delivery/endpoint-queries.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { noteFailures } from '../../../../src/core/store/delivery/endpoints.ts'
import { openDeliveryWorld } from '../../../support/delivery/delivery-world.ts'
import { endpointNamed } from '../../../support/delivery/unnamed.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines, openBareStore } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

async function openFailures(engine: Engine) {
  const { store, reads } = await openBareStore(engine)
  const note = (failures: readonly FailureNote[], nowMs = NOON) => store.transaction(async (tx) => noteFailures(tx, failures, nowMs))
  const listed = async (sinceMs = 0) =>
    (await reads.listFailures({ endpointId: '1', sinceMs })).map(({ status, count, firstAtMs, lastAtMs }) => [
      status,
      count,
      firstAtMs,
      lastAtMs,
    ])
  return { store, reads, note, listed }
}

const failed = (change: Partial<FailureNote> = {}): FailureNote => ({
  endpointId: '1',
  digest: 'a',
  status: 500,
  reason: null,
  answerStart: Buffer.from('down'),
  count: 1,
  firstAtMs: NOON,
  lastAtMs: NOON,
  deliveryId: 7,
  ...change,
})

describe.each(engines)('failures of an endpoint on $name', (engine) => {
  test('equal failures are one group, with its first time, its last time and its last answer', async () => {
    const { note, reads } = await openFailures(engine)
    await note([failed({ count: 3 }), failed({ digest: 'b', status: null, reason: 'timeout', answerStart: new Uint8Array() })])
    await note([failed({ count: 2, firstAtMs: NOON + 5, lastAtMs: NOON + 9, deliveryId: 8, answerStart: Buffer.from('still down') })])
    const [first, second, ...others] = await reads.listFailures({ endpointId: '1', sinceMs: 0 })
    expect(others).toEqual([])
    expect(first).toMatchObject({ status: 500, count: 5, firstAtMs: NOON, lastAtMs: NOON + 9, deliveryId: 8 })
    expect(String(first?.answerStart)).toBe('still down')
    expect(second).toMatchObject({ status: null, reason: 'timeout', count: 1 })
    expect((await reads.lastFailures(['1', '2'])).get('1')).toEqual(first)
    expect(await reads.listFailures({ endpointId: '2', sinceMs: 0 })).toEqual([])
  })

  test(`the last ${FAILURE_GROUPS_MAX} kinds of failure of each endpoint are kept`, async () => {
    const { note, listed } = await openFailures(engine)
    for (let at = 0; at < FAILURE_GROUPS_MAX + 5; at++)
      await note([failed({ digest: `d${at}`, status: 400 + at, firstAtMs: NOON + at, lastAtMs: NOON + at }), failed({ endpointId: '2' })])
    const kept = await listed()
    expect(kept.map(([status]) => status)).toEqual(Array.from({ length: FAILURE_GROUPS_MAX }, (_, at) => 424 - at))
  })

  test('a kind of failure that is absent for a month is dropped, and then counts from 1 again', async () => {
    const { note, listed } = await openFailures(engine)
    await note([failed({ count: 9 })])
    const laterMs = NOON + FAILURES_COUNT_FOR_MS + 1
    expect(await listed(laterMs - FAILURES_COUNT_FOR_MS)).toEqual([])
    await note([failed({ firstAtMs: laterMs, lastAtMs: laterMs })], laterMs)
    expect(await listed()).toEqual([[500, 1, laterMs, laterMs]])
  })

  test('failed attempts are counted, and a removed endpoint has no failures', async () => {
    const { push, run, reads, id, writes, now } = await openDeliveryWorld(engine, NOON, { statusOf: () => 503 })
    for (const at of [1, 2, 3]) await push({ trackingIds: [`100${at}`] })
    await run(NOON + 1000)
    expect(await reads.listFailures({ endpointId: id, sinceMs: 0 })).toMatchObject([{ status: 503, count: 3, firstAtMs: NOON }])
    expect((await reads.lastFailures([id])).get(id)).toMatchObject({ status: 503 })
    await writes().removeEndpoint({ id, nowMs: now() })
    expect(await reads.listFailures({ endpointId: id, sinceMs: 0 })).toEqual([])
  })
})

describe.each(engines)('the next probe of a failing endpoint on $name', (engine) => {
  test.each([401, 503])('is shown with the time at which it is made, while events wait (answer %i)', async (status) => {
    const { push, run, reads, now, attempts, endpoint, underWay } = await openDeliveryWorld(engine, NOON, { statusOf: () => status })
    const view = async () => (await viewEndpoint(reads, await endpoint(), now())).nextProbe
    for (let parcel = 0; parcel < 5; parcel++) await push({ trackingIds: [`100${parcel}`] })
    expect(await view()).toBeNull()
    await run(NOON + 1000)
    const shown: number[] = []
    for (let second = 2; second < 120; second++) {
      if (second === 60) await push({ trackingIds: ['2001'] })
      const before = attempts.length
      const next = await view()
      await run(NOON + second * 1000)
      const made = attempts[before]
      if (made === undefined || underWay().length > 0) continue
      expect([second, made.beganMs]).toEqual([second, next?.atMs])
      shown.push(second)
    }
    expect(shown.length).toBeGreaterThan(3)
    const planned = await view()
    expect(planned?.atMs).toBeGreaterThan(now())
    // After a 401, a new event of a parcel without waiting events would be tried before the probe; after a 503, at the same time.
    expect((planned?.atMs ?? 0) - (planned?.ofNewMs ?? 0)).toEqual(status === 401 ? expect.toSatisfy((ms: number) => ms > 0) : 0)
  })

  test('comes with the next event if nothing waits', async () => {
    const { push, run, reads, now, endpoint, writes } = await openDeliveryWorld(engine, NOON, { statusOf: () => 500 })
    for (let nth = 0; nth < 5; nth++) await push({ trackingIds: [`100${nth}`] })
    await run(NOON + 1000)
    const { deliveries } = await reads.listDeliveries({ endpointId: null, state: null, parcelId: null, before: null, limit: 10 })
    for (const { deliveryId } of deliveries) await writes().skipDelivery({ deliveryId })
    await run(NOON + 1001)
    expect((await viewEndpoint(reads, await endpoint(), now())).nextProbe).toEqual({ atMs: null, ofNewMs: expect.any(Number) })
  })
})

describe.each(engines)('an endpoint of the config that has refused an event on $name', (engine) => {
  test('is tried at once if its secrets have changed since the last start, else not', async () => {
    const { writes, reads, push, now } = await openStore(NOON, engine)
    const sync = async (secretsFingerprint?: string, hasNewSecrets = false) => {
      const mark = secretsFingerprint === undefined ? {} : { secretsFingerprint, hasNewSecrets }
      await writes.syncEndpoints([{ ...endpointNamed('shop'), ...mark }], now(), null)
      return (await reads.listEndpoints())[0]?.health.round
    }
    expect(await sync()).toBe(1)
    await push({ trackingIds: ['1001'] })
    const round = { settled: [], inFlight: {}, allowance: {}, claimsMax: 10, nowMs: now() }
    const { claimed } = await writes.dispatchRound(round)
    const result = { kind: 'rejected', status: 401, retryAfterMs: null, durationMs: 1, answerStart: new Uint8Array() } as const
    await writes.dispatchRound({ ...round, settled: claimed.map((delivery) => ({ ...delivery, result, atMs: now(), random: 0.5 })) })
    // The first start that stores the secrets cannot know whether they have changed.
    expect([await sync('a'), await sync('a')]).toEqual([1, 1])
    expect([await sync('b'), await sync('b')]).toEqual([2, 2])
    // Here another replica has stored the new secrets before this replica was reloaded.
    expect([await sync('b', true), await sync('b')]).toEqual([3, 3])
  })
})

describe.each(engines)('a stored endpoint on $name', (engine) => {
  test('keeps when it was disabled and by whom, until it is enabled', async () => {
    const { writes, endpoint, id } = await openDeliveryWorld(engine, NOON, { statusOf: () => 200 })
    const order = (enabled: boolean, atMs: number, name: string) => {
      const by = { kind: 'app', name, address: null } as const
      const action = { atMs, by, action: 'endpoint.changed', target: null, detail: {} } as const
      return writes().changeEndpoint({ id, change: { enabled }, key: null, nowMs: atMs, action })
    }
    expect((await endpoint()).disabledSince).toBeUndefined()
    await order(false, NOON + 1, 'anna')
    await order(false, NOON + 2, 'bertil')
    expect((await endpoint()).disabledSince).toEqual({ atMs: NOON + 1, by: 'anna' })
    await order(true, NOON + 3, 'bertil')
    expect(await endpoint()).toMatchObject({ disabled: null })
    expect((await endpoint()).disabledSince).toBeUndefined()
  })

  test('keeps when it was disabled, but no name, if its own answer disabled it', async () => {
    const { push, run, endpoint, kill } = await openDeliveryWorld(engine, NOON, { statusOf: () => 410 })
    await push({})
    await run(NOON + 1000)
    await kill()
    const { disabled, disabledSince } = await endpoint()
    expect([disabled, disabledSince?.by]).toEqual(['gone', null])
    expect(disabledSince?.atMs).toBeGreaterThanOrEqual(NOON)
  })

  test('keeps when its key was set, even if a rotation set the key', async () => {
    const { writes, endpoint, id } = await openDeliveryWorld(engine, NOON, { statusOf: () => 200 })
    expect((await endpoint()).keys).toMatchObject({ currentSinceMs: NOON, next: null })
    await writes().changeEndpoint({ id, change: {}, key: { kind: 'rotate', sealed: 'new' }, nowMs: NOON + 5 })
    expect((await endpoint()).keys).toMatchObject({ currentSinceMs: NOON, next: { sealed: 'new' } })
    await writes().changeEndpoint({ id, change: {}, key: { kind: 'end' }, nowMs: NOON + 9 })
    expect((await endpoint()).keys).toMatchObject({ current: 'new', currentSinceMs: NOON + 5, next: null })
    await writes().changeEndpoint({ id, change: {}, key: { kind: 'replace', sealed: 'newest' }, nowMs: NOON + 20 })
    expect((await endpoint()).keys).toMatchObject({ current: 'newest', currentSinceMs: NOON + 20 })
  })
})
