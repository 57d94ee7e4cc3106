import { describe, expect, test } from 'vitest'
import type { AttemptResult } from '../../../../src/core/domain/delivery/delivery.ts'
import type { ClaimedDelivery, DispatchRound, SettledAttempt } from '../../../../src/core/domain/delivery/dispatch-round.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

const unread = { durationMs: 1, answerStart: new Uint8Array() }
const REFUSED: AttemptResult = { kind: 'rejected', status: 500, retryAfterMs: null, ...unread }
const TAKEN: AttemptResult = { kind: 'accepted', status: 200, ...unread }
const failed = (reason: 'timeout' | 'interrupted' | 'body_gone'): AttemptResult => ({ kind: 'failed', reason, detail: '', ...unread })

function settled({ body: _body, previousSequence: _previous, ...delivery }: ClaimedDelivery, result: AttemptResult): SettledAttempt {
  return { ...delivery, result, atMs: NOON, random: 0.5 }
}

/** Stores three events of one parcel for an endpoint. */
async function openThree(engine: Engine) {
  const store = await openStore(NOON, engine)
  const { id } = await addEndpoint(store.writes, NOON)
  for (const minute of [1, 2, 3]) await store.push({ eventTime: `2026-03-01T10:0${minute}:00.000Z` })
  const list = async () =>
    (await store.reads.listDeliveries({ endpointId: id, parcelId: null, state: null, before: null, limit: 10 })).deliveries.toReversed()
  const round = async (rest: Partial<DispatchRound> = {}, writes = store.writes) => {
    const nowMs = store.now()
    return await writes.dispatchRound({ settled: [], inFlight: {}, allowance: {}, claimsMax: 100, nowMs, ...rest })
  }
  return {
    ...store,
    id,
    list,
    round,
    states: async () => (await list()).map(({ state, reason }) => [state, reason]),
    idOf: async (nth: number) => (await list())[nth]?.deliveryId ?? 0,
    async skip(nth: number) {
      return await store.writes.skipDelivery({ deliveryId: (await list())[nth]?.deliveryId ?? 0 })
    },
    /** Claims the first delivery, whose attempt then counts as under way. */
    async begin(): Promise<ClaimedDelivery> {
      const [claimed] = (await round()).claimed
      if (claimed === undefined) throw new Error('nothing was claimed')
      return claimed
    },
    underWay: (...claimed: readonly ClaimedDelivery[]) => ({ [id]: claimed.map(({ deliveryId }) => deliveryId) }),
    change: (enabled: boolean) => store.writes.changeEndpoint({ id, change: { enabled }, key: null, nowMs: store.now() }),
  }
}

const QUEUED = ['queued', null]
const MARKED = ['queued', 'skipped']
const SKIPPED = ['dead', 'skipped']

describe.each(engines)('skipping deliveries on $name', (engine) => {
  test('a delivery skipped during its attempt keeps its state, and its successors wait', async () => {
    const { begin, skip, round, underWay, states, list } = await openThree(engine)
    const first = await begin()
    expect(await skip(0)).toBe('done')
    expect(await states()).toEqual([MARKED, QUEUED, QUEUED])
    expect((await list())[0]).toMatchObject({ settledAtMs: null, nextAttemptAtMs: null })
    for (let look = 0; look < 2; look++) expect((await round({ inFlight: underWay(first) })).claimed).toEqual([])
    expect(await states()).toEqual([MARKED, QUEUED, QUEUED])
  })

  test.each([
    ['accepted', TAKEN, ['delivered', null]],
    ['accepted with a body', { ...TAKEN, answerStart: Buffer.from('thanks') }, ['delivered', null]],
    ['refused', REFUSED, SKIPPED],
    ['timed out', failed('timeout'), SKIPPED],
    ['interrupted', failed('interrupted'), SKIPPED],
    ['given up', failed('body_gone'), SKIPPED],
  ] as const)('a delivery skipped in an attempt ends when the attempt is %s, and its successor is sent', async (_how, result, end) => {
    const { begin, skip, round, states, list, idOf } = await openThree(engine)
    const first = await begin()
    await skip(0)
    const { claimed } = await round({ settled: [settled(first, result)] })
    expect(claimed.map(({ deliveryId }) => deliveryId)).toEqual([await idOf(1)])
    expect(await states()).toEqual([end, QUEUED, QUEUED])
    expect((await list())[0]).toMatchObject({ settledAtMs: NOON })
    expect(await skip(0)).toBe('ended')
  })

  test('a delivery skipped during an attempt that gets a 410 is dead, not held', async () => {
    const { begin, skip, round, states } = await openThree(engine)
    const first = await begin()
    await skip(0)
    const gone = { kind: 'rejected', status: 410, retryAfterMs: null, ...unread } as const
    expect((await round({ settled: [settled(first, gone)] })).claimed).toEqual([])
    expect(await states()).toEqual([SKIPPED, ['held', null], ['held', null]])
  })

  test('a delivery skipped before or between attempts is not sent any more', async () => {
    const { begin, skip, round, states, idOf } = await openThree(engine)
    const first = await begin()
    await round({ settled: [settled(first, REFUSED)] })
    await skip(0)
    const [second] = (await round()).claimed
    expect(second?.deliveryId).toBe(await idOf(1))
    await skip(2)
    await round({ settled: second === undefined ? [] : [settled(second, TAKEN)] })
    expect(await states()).toEqual([SKIPPED, ['delivered', null], SKIPPED])
  })

  test('skipping a delivery does not affect the running attempt of the delivery before it', async () => {
    const { begin, skip, round, underWay, states } = await openThree(engine)
    const first = await begin()
    await skip(1)
    expect((await round({ inFlight: underWay(first) })).claimed).toEqual([])
    expect(await states()).toEqual([QUEUED, SKIPPED, QUEUED])
  })

  test('a claim is given back if its delivery is skipped before it is sent', async () => {
    const { begin, skip, round, underWay, id } = await openThree(engine)
    const first = await begin()
    await skip(0)
    const { overtaken } = await round({ inFlight: underWay(first) })
    expect(overtaken).toEqual([{ deliveryId: first.deliveryId, endpointId: id }])
  })

  test('a delivery of a disabled endpoint is skipped when its attempt has ended', async () => {
    const { begin, skip, round, underWay, change, states } = await openThree(engine)
    const first = await begin()
    await change(false)
    await skip(0)
    await skip(1)
    await round({ inFlight: underWay(first) })
    expect(await states()).toEqual([['held', 'skipped'], SKIPPED, ['held', null]])
    await round({ settled: [settled(first, REFUSED)] })
    expect(await states()).toEqual([SKIPPED, SKIPPED, ['held', null]])
  })

  test('a skipped delivery whose endpoint is removed before its attempt ends is cancelled', async () => {
    const { begin, skip, round, writes, id, states } = await openThree(engine)
    const first = await begin()
    await skip(0)
    await writes.removeEndpoint({ id, nowMs: NOON })
    await round({ settled: [settled(first, REFUSED)] })
    await writes.cancelRemoved({ limit: 100 })
    const cancelled = ['cancelled', 'endpoint_removed']
    expect(await states()).toEqual([cancelled, cancelled, cancelled])
    expect(await skip(0)).toBe('ended')
  })

  test('a delivery can be skipped several times during its attempt', async () => {
    const { begin, skip, round, states } = await openThree(engine)
    const first = await begin()
    expect([await skip(0), await skip(0)]).toEqual(['done', 'done'])
    await round({ settled: [settled(first, REFUSED)] })
    expect([await skip(0), (await states())[0]]).toEqual(['ended', SKIPPED])
  })

  test('a retry cancels the skip of a delivery during its attempt', async () => {
    const { begin, skip, round, writes, underWay, states } = await openThree(engine)
    const first = await begin()
    await skip(0)
    expect(await writes.retryDelivery({ deliveryId: first.deliveryId, nowMs: NOON })).toBe('done')
    expect((await states())[0]).toEqual(QUEUED)
    expect((await round({ inFlight: underWay(first) })).overtaken).toEqual([])
    const { claimed } = await round({ settled: [settled(first, REFUSED)], nowMs: NOON + HOUR_MS })
    expect([claimed, (await states())[0]]).toEqual([[], ['retrying', null]])
  })

  test('a retry that is refused because the endpoint is disabled cancels no skip', async () => {
    const { begin, skip, writes, change, states } = await openThree(engine)
    const first = await begin()
    await skip(0)
    await change(false)
    expect(await writes.retryDelivery({ deliveryId: first.deliveryId, nowMs: NOON })).toBe('disabled')
    expect((await states())[0]).toEqual(['held', 'skipped'])
  })

  test('a skipped delivery that is replayed is sent again, before its successor', async () => {
    const { begin, skip, round, writes, id, states } = await openThree(engine)
    const first = await begin()
    await skip(0)
    const [second] = (await round({ settled: [settled(first, REFUSED)] })).claimed
    const selection = { endpointId: id, states: ['dead'] as const, fromSequence: 0, fromMs: 0, sequence: null, parcelId: null }
    const replay = { to: id, after: null, untilMs: NOON, limit: 10, nowMs: NOON }
    await writes.replayDeliveries({ selection: { ...selection, deliveryId: first.deliveryId }, ...replay })
    expect((await states())[0]).toEqual(QUEUED)
    const { claimed } = await round({ settled: second === undefined ? [] : [settled(second, REFUSED)] })
    expect(claimed.map(({ deliveryId }) => deliveryId)).toEqual([first.deliveryId])
  })

  test('a skipped delivery whose parcel is joined ends, and the parcel’s next delivery is sent', async () => {
    const { begin, skip, round, push, states, idOf, underWay } = await openThree(engine)
    const first = await begin()
    await skip(0)
    await push({ trackingIds: ['2002'], eventTime: '2026-03-01T10:00:00.000Z' })
    const [other] = (await round({ inFlight: underWay(first) })).claimed
    if (other === undefined) throw new Error('the other parcel was not claimed')
    await push({ trackingIds: ['2002', '1001'], eventTime: '2026-03-01T10:09:00.000Z' })
    const { claimed } = await round({ settled: [settled(first, REFUSED)], inFlight: underWay(other) })
    expect(claimed).toEqual([])
    expect((await states())[0]).toEqual(SKIPPED)
    const next = await round({ settled: [settled(other, TAKEN)] })
    expect(next.claimed.map(({ deliveryId }) => deliveryId)).toEqual([await idOf(1)])
  })
})
