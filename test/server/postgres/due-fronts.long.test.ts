import { expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../../src/core/domain/delivery/dispatch-round.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { openDeliveryWorld } from '../../support/delivery/delivery-world.ts'
import { MINUTE_MS } from '../../support/runner/constants.ts'
import { changeStoredRows, storedNumber } from '../../support/store/stored-rows.ts'

const NOON = Date.parse('2026-03-01T12:00:00Z')
const SECOND_MS = 1000

const ofParcel = (parcel: number, second = 0) => ({
  trackingIds: [String(100_000 + parcel)],
  eventTime: new Date(NOON - 2 * 60 * MINUTE_MS + second * SECOND_MS).toISOString(),
})

async function openWorld(statusOf: (delivery: ClaimedDelivery, beganMs: number) => number = () => 200) {
  const world = await openDeliveryWorld(postgres, NOON, { statusOf })
  return {
    ...world,
    runFor: (ms: number) => world.run(world.now() + ms),
    delivered: () => storedNumber(world.path, 'select count(*) from delivery where state = 2'),
  }
}

test('a delivery that is committed long after it fell due is found within two seconds', async () => {
  const { push, runFor, path, id, now, attempts } = await openWorld()
  await push(ofParcel(1))
  await runFor(MINUTE_MS)
  await push(ofParcel(2))
  await runFor(100)
  await changeStoredRows(
    path,
    `insert into delivery (endpoint_id, parcel_id, sequence, previous_sequence, inbox_id, state, attempts, queued_at_ms, next_attempt_at_ms)
     select ${id}, 1000000, 1000000, 0, (select min(inbox_id) from delivery), 1, 0, ${now() - 30_000}, ${now() - 30_000}`,
  )
  const queuedAtMs = now()
  await runFor(10 * SECOND_MS)
  const [late] = attempts.filter(({ delivery }) => delivery.sequence === 1_000_000)
  expect((late?.beganMs ?? Number.POSITIVE_INFINITY) - queuedAtMs).toBeLessThanOrEqual(2 * SECOND_MS)
})

test('a delivery that waits behind a retried delivery is sent as soon as that one ends', async () => {
  const upAtMs = NOON + 10 * MINUTE_MS
  let parcel: number | null = null
  const { push, run, runFor, attempts } = await openWorld(({ parcelId }, beganMs) => {
    parcel ??= parcelId
    return parcelId === parcel && beganMs < upAtMs ? 500 : 200
  })
  for (let second = 0; second < 5; second++) await push(ofParcel(1, second))
  for (let minute = 0; minute < 60; minute++) {
    await push(ofParcel(2 + minute))
    await runFor(MINUTE_MS)
  }
  await run(NOON + 120 * MINUTE_MS)
  const ofFirst = attempts.filter(({ delivery }) => delivery.parcelId === parcel)
  expect(new Set(ofFirst.map(({ delivery }) => delivery.sequence)).size).toBe(5)
  const waits = ofFirst.flatMap(({ delivery, beganMs }, at) => {
    const before = ofFirst[at - 1]
    return before === undefined || before.delivery.sequence === delivery.sequence ? [] : [beganMs - before.endsMs]
  })
  expect(Math.max(...waits)).toBeLessThan(100)
})

test('a delivery that failed before a retry of its endpoint is sent at once after the retry', async () => {
  let isUp = false
  const { push, run, runFor, writes, now, id, delivered, attempts } = await openWorld(() => (isUp ? 200 : 500))
  for (let parcel = 0; parcel < 30; parcel++) await push(ofParcel(parcel))
  await runFor(30 * MINUTE_MS)
  isUp = true
  const wokenAtMs = now()
  await writes().retryEndpoint({ id, nowMs: now() })
  await run(now() + MINUTE_MS)
  expect(await delivered()).toBe(30)
  const after = attempts.filter(({ beganMs }) => beganMs >= wokenAtMs)
  expect(Math.max(...after.map(({ beganMs }) => beganMs)) - wokenAtMs).toBeLessThan(2 * SECOND_MS)
})
