import { expect, test } from 'vitest'
import type { EndpointSettings } from '../../src/domain/endpoint.ts'
import type { ClaimedDelivery, DeliveryTurn, SettledAttempt } from '../../src/flow/ports.ts'
import { createRelay } from '../../src/flow/relay.ts'
import { deliverOptions } from '../support/policy.ts'
import { addEndpoint, endpointSettings } from '../support/stored-endpoint.ts'
import { openStore } from '../support/write-side.ts'

const START_MS = Date.parse('2026-03-01T12:00:00Z')
const CONCURRENCY = 2
const kept = { durationMs: 1, answerStart: new Uint8Array() }

/** A relay on a store of its own, with an endpoint that answers when the test says so; no network is in it. */
async function openRelay(change: Partial<EndpointSettings> = {}) {
  const store = await openStore(START_MS)
  await addEndpoint(store.writes, START_MS, { concurrency: CONCURRENCY, ...change })
  const underWay: (() => void)[] = []
  const sent: string[] = []
  const turns: DeliveryTurn[] = []
  const wakes: (number | null)[] = []
  const relay = createRelay(
    {
      write: {
        deliveryTurn: (turn) => {
          turns.push(turn)
          return store.writes.deliveryTurn(turn)
        },
      },
      sender: {
        send: ({ body }) =>
          new Promise((resolve) => {
            sent.push(Buffer.from(body).toString())
            underWay.push(() => resolve({ kind: 'accepted', status: 200, ...kept }))
          }),
      },
      signerOf: async () => ({ headers: () => ({}) }),
      routeOf: () => ({}),
      clock: { now: store.now, monotonic: store.now },
      random: () => 0.5,
      meter: { deliveryAttempted: () => {} },
      log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
      wake: (atMs) => void wakes.push(atMs),
    },
    { relayId: 'relay', claimsMax: 100 },
  )
  /** Ends the first of what is under way, and lets what that leads to happen. */
  const answer = async () => {
    underWay.shift()?.()
    await settled()
  }
  const answerAll = async () => {
    for (const end of underWay.splice(0)) end()
    await settled()
  }
  const pass = async () => {
    await relay.pass()
    await settled()
  }
  const pushParcels = async (count: number) => {
    for (let parcel = 0; parcel < count; parcel++) await store.push({ trackingIds: [`${1000 + parcel}`] })
  }
  return { ...store, underWay, sent, turns, wakes, answer, answerAll, pass, pushParcels }
}

/** Until promises that wait for nothing outside have run. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('what ended counts against the concurrency until it is written down, so that no more than that can come twice', async () => {
  const { underWay, sent, turns, answerAll, pass, pushParcels } = await openRelay()
  await pushParcels(7)
  await pass()
  expect(underWay).toHaveLength(CONCURRENCY)
  await answerAll()
  expect(underWay).toHaveLength(0)
  for (let round = 2; round <= 4; round++) {
    await pass()
    expect(sent).toHaveLength(Math.min(7, round * CONCURRENCY))
    expect(turns.at(-1)?.settled).toHaveLength(CONCURRENCY)
    await answerAll()
  }
  expect(new Set(sent).size).toBe(7)
})

test('a turn is asked for at once when half of what was under way has ended and more is due, and else within 5 ms', async () => {
  const { underWay, wakes, now, answer, pass, pushParcels } = await openRelay({ concurrency: 4 })
  await pushParcels(6)
  await pass()
  wakes.length = 0
  for (let nth = 0; nth < 3; nth++) await answer()
  expect(wakes).toEqual([now() + 5, null, null])
  // Now all that is due fits.
  await pass()
  expect(underWay).toHaveLength(3)
  wakes.length = 0
  while (underWay.length > 0) await answer()
  expect(wakes).toEqual([now() + 5, now() + 5, now() + 5])
})

/** The write side alone, asked for turns by the test. */
async function openTurns() {
  const store = await openStore(START_MS)
  await addEndpoint(store.writes, START_MS, endpointSettings)
  const turn = (rest: Partial<DeliveryTurn> = {}) =>
    store.writes.deliveryTurn({ settled: [], inFlight: {}, allowance: {}, claimsMax: 100, nowMs: store.now(), ...rest })
  const settle = ({ body: _body, previousSequence: _previous, ...delivery }: ClaimedDelivery): SettledAttempt => {
    return { ...delivery, result: { kind: 'accepted', status: 200, ...kept }, atMs: store.now(), random: 0.5 }
  }
  return { ...store, turn, settle }
}

test('a claim holds until it lapses, and when that is is told', async () => {
  const { push, pass, now, turn } = await openTurns()
  await push()
  const { claimed } = await turn()
  expect(claimed).toHaveLength(1)
  expect(await turn()).toMatchObject({ claimed: [], nextAtMs: now() + deliverOptions.leaseMs })
  pass(deliverOptions.leaseMs - 1)
  expect((await turn()).claimed).toEqual([])
  pass(1)
  expect((await turn()).claimed).toEqual(claimed)
})

test('claims are not looked past for more than there is room', async () => {
  const { push, turn, settle } = await openTurns()
  for (let parcel = 0; parcel < 20; parcel++) await push({ trackingIds: [`${1000 + parcel}`] })
  const first = await turn({ claimsMax: 3 })
  const second = await turn({ claimsMax: 3 })
  expect([first.more.length, second.more.length]).toEqual([1, 1])
  const rest = await turn({ settled: first.claimed.map(settle) })
  const claimed = [first, second, rest].flatMap((report) => report.claimed.map(({ deliveryId }) => deliveryId))
  expect(new Set(claimed).size).toBe(claimed.length)
})
