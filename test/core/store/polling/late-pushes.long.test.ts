import { describe, expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../../../src/core/domain/delivery/dispatch-round.ts'
import { noFilters } from '../../../../src/core/domain/delivery/endpoint-state.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { pruneStoredFeed, storedNumber } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

const MINUTES = [1, 2, 3, 4, 5, 6, 7]

const timeOf = (minute: number) => `2026-03-01T10:0${minute}:00`
const pushed = (minute: number) => ({ eventTime: `${timeOf(minute)}.000Z` })
const polled = (minute: number) => ({ eventTimestamp: `${timeOf(minute)}Z` })
const bodyOf = (minute: number) => String(pushBody(pushed(minute)))
const bodiesOf = (deliveries: readonly ClaimedDelivery[]) => deliveries.map(({ body }) => String(body))
const minutesOf = (deliveries: readonly ClaimedDelivery[]) =>
  deliveries.map(({ body }) => Number(/"eventTime":"2026-03-01T10:0(\d)/.exec(String(body))?.[1]))

/** Opens a store that has learnt all entries of a parcel from one poll, so that they are backfill. */
async function startAsked(engine: Engine) {
  const store = await openStore(NOON, engine)
  const plain = await addEndpoint(store.writes, NOON)
  const backfill = await addEndpoint(store.writes, NOON, { name: 'backfill', backfill: true })
  await store.poll({ statuses: MINUTES.toReversed().map(polled) })
  expect(await plain.take()).toEqual([])
  expect(minutesOf(await backfill.take())).toEqual(MINUTES)
  return { ...store, plain, backfill }
}

async function pruneFeed(path: string): Promise<void> {
  await pruneStoredFeed(path, await storedNumber(path, 'select max(sequence) from feed'))
}

describe.each(engines)('late pushes on $name', (engine) => {
  test.each([
    ['in their own order', MINUTES],
    ['newest first', MINUTES.toReversed()],
    ['in no order', [4, 1, 7, 2, 6, 3, 5]],
  ])('6.6: each late push of a backfill entry is sent once to endpoints without backfill: %s', async (_, order) => {
    const { push, plain, backfill } = await startAsked(engine)
    for (const minute of [...order, ...order]) await push(pushed(minute))
    expect(bodiesOf(await plain.take())).toEqual(order.map(bodyOf))
    expect(await backfill.take()).toEqual([])
  })

  test('6.6: the relay knows that an entry is backfill even after its event has left the feed', async () => {
    const { push, plain, backfill, path } = await startAsked(engine)
    await push(pushed(1))
    await pruneFeed(path)
    for (const minute of MINUTES) await push(pushed(minute))
    expect(minutesOf(await plain.take())).toEqual(MINUTES)
    expect(await backfill.take()).toEqual([])
  })

  test('6.6: when a push joins two parcels, no backfill entry of either is sent twice', async () => {
    const { push, poll, plain } = await startAsked(engine)
    // These pushes report entries that the poll has already found, but the relay cannot know that before the join.
    await push({ ...pushed(3), trackingIds: ['2002'] })
    await push({ ...pushed(5), trackingIds: ['2002'] })
    expect(minutesOf(await plain.take())).toEqual([3, 5])
    await push({ eventTime: '2026-03-01T10:08:00.000Z', trackingIds: ['1001', '2002'] })
    expect(minutesOf(await plain.take())).toEqual([8])
    await poll({ askedAtMs: NOON + 1, statuses: MINUTES.map(polled) })
    for (const minute of MINUTES) await push(pushed(minute))
    expect(minutesOf(await plain.take())).toEqual([1, 2, 4, 6, 7])
  })

  test('6.6: an endpoint that was added after the backfill gets each event once', async () => {
    const { push, writes, backfill } = await startAsked(engine)
    await push(pushed(1))
    const [late, all] = [
      await addEndpoint(writes, NOON, { name: 'late', backfill: true }),
      await addEndpoint(writes, NOON, { name: 'all', backfill: true, from: 0 }),
    ]
    await writes.replayFeed({ limit: 100, nowMs: NOON })
    await push(pushed(2))
    expect([minutesOf(await late.take()), minutesOf(await all.take())]).toEqual([[2], MINUTES])
    expect(await backfill.take()).toEqual([])
  })

  test('6.6: an endpoint that no longer wants backfill does not get again what it got as backfill', async () => {
    const { push, writes, plain, backfill } = await startAsked(engine)
    await writes.changeEndpoint({ id: backfill.id, change: { backfill: false }, key: null, nowMs: NOON })
    await writes.changeEndpoint({ id: plain.id, change: { backfill: true }, key: null, nowMs: NOON })
    for (const minute of MINUTES) await push(pushed(minute))
    expect([minutesOf(await plain.take()), await backfill.take()]).toEqual([MINUTES, []])
  })

  test('6.6: filters apply to the push of an entry that was sent as backfill', async () => {
    const { push, writes, plain } = await startAsked(engine)
    const other = await addEndpoint(writes, NOON, { name: 'other', filters: { ...noFilters, status: ['DeliverySucceeded'] } })
    await push(pushed(1))
    expect([minutesOf(await plain.take()), await other.take()]).toEqual([[1], []])
  })

  test('6.6: an entry that was sent as backfill is never a missed push', async () => {
    const { push, writes, pass } = await startAsked(engine)
    await push(pushed(1))
    expect(await writes.settleMissedPushes(pass(86_400_000))).toEqual([])
  })

  test('7.1: a push is sent once, even if another push later takes its place in a polled entry', async () => {
    const { push, poll, writes } = await openStore(NOON, engine)
    const plain = await addEndpoint(writes, NOON)
    const backfill = await addEndpoint(writes, NOON, { name: 'backfill', backfill: true })
    await poll({ statuses: [{ eventTimestamp: '2026-03-01T10:00:00Z', location: '' }] })
    const inLund = { eventTime: '2026-03-01T10:00:00.100Z', location: 'Lund' }
    await push(inLund)
    expect([bodiesOf(await plain.take()), minutesOf(await backfill.take())]).toEqual([[String(pushBody(inLund))], [0]])
    // This push is earlier than the one from Lund. So the polled entry is now merged with this push, and Lund is a separate entry.
    const inUmea = { eventTime: '2026-03-01T10:00:00.050Z', location: 'Umeå' }
    await push(inUmea)
    expect([bodiesOf(await plain.take()), bodiesOf(await backfill.take())]).toEqual([
      [String(pushBody(inUmea))],
      [String(pushBody(inLund))],
    ])
    for (const again of [inLund, inUmea]) await push({ ...again, consumer: { en: 'Again' } })
    expect([await plain.take(), await backfill.take()]).toEqual([[], []])
  })
})
