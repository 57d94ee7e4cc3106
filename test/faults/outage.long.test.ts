import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { createOwnBudget } from '../../src/core/carrier/budget/own-budget.ts'
import type { DuePoll } from '../../src/core/domain/polling/poll.ts'
import { createClockRollback, createPoller, createPollsUnderWay } from '../../src/core/flow/polling/poller.ts'
import { closeOpened, openCarrier } from '../core/carrier/carrier-double.ts'
import { answerBody } from '../support/history/builders.ts'
import { ADMIN, ask, logIn } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { HOUR_MS, NOON } from '../support/runner/constants.ts'
import { createLogBook } from '../support/runner/log-book.ts'
import { byForm } from '../support/runner/long-form.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { openStore } from '../support/store/write-side.ts'
import { eventually, startWorld } from './world.ts'

const { log } = createLogBook()

/** Opens a store with watched parcels, and a poller. The carrier answers without delay, so only the budget limits the polls. */
async function openPoller(parcels: number, ratePerSecond: number) {
  const store = await openStore(NOON)
  const polled: { readonly parcelId: number; readonly atMs: number }[] = []
  let monotonicMs = 0
  const clock = { now: store.now, monotonic: () => monotonicMs }
  const budget = createOwnBudget({ ratePerSecond, callsPerDay: 1_000_000, concurrency: 4 })
  const pass = (ms: number) => {
    monotonicMs += ms
    store.pass(ms)
  }
  const poll = async ({ parcelId, identifiers }: DuePoll) => {
    for (let take = budget.takeSlot(monotonicMs, clock.now()); take.kind !== 'taken'; take = budget.takeSlot(monotonicMs, clock.now())) {
      if (take.kind === 'unwritten') budget.writtenDown(budget.toWriteDown(clock.now(), true))
      else if (take.kind === 'wait') pass(take.untilMs - monotonicMs)
      else throw new Error(take.kind)
    }
    polled.push({ parcelId, atMs: monotonicMs })
    const [asked = ''] = identifiers
    await store.poll({
      asked,
      trackingIds: [`9${asked.slice(2)}`],
      statuses: [{ eventTimestamp: new Date(NOON - HOUR_MS).toISOString() }],
    })
    budget.release()
    return 'recorded' as const
  }
  const followClock = createClockRollback({ write: store.writes, clock, log, onShifted: () => undefined }, null)
  const pollDue = createPoller(
    {
      write: store.writes,
      refresh: { poll },
      underWay: createPollsUnderWay(),
      meter: { missedPush: () => undefined },
      clock,
      log,
      isQuiet: () => false,
    },
    { concurrency: 4 },
  )
  await store.writes.watchMany({
    identifiers: Array.from({ length: parcels }, (_, at) => `PO${String(at).padStart(6, '0')}`),
    nowMs: NOON,
  })
  return {
    ...store,
    pass,
    polled,
    jump: (ms: number) => void store.pass(ms),
    async wake() {
      await followClock()
      while ((await pollDue()) === 'busy');
    },
    monotonic: () => monotonicMs,
  }
}

function mostInASecond(times: readonly { readonly atMs: number }[]): number {
  return Math.max(...times.map(({ atMs }) => times.filter((one) => one.atMs >= atMs && one.atMs < atMs + 1000).length))
}

const OVERDUE = byForm(100, 300)

test('P12: after a day without polls all parcels are polled at the rate, each only once', async () => {
  const poller = await openPoller(OVERDUE, 10)
  poller.pass(60_000)
  await poller.wake()
  expect(poller.polled).toHaveLength(OVERDUE)
  poller.pass(24 * HOUR_MS)
  const before = poller.polled.length
  const startedAtMs = poller.monotonic()
  await poller.wake()
  const caughtUp = poller.polled.slice(before)
  expect(new Set(caughtUp.map(({ parcelId }) => parcelId)).size).toBe(OVERDUE)
  expect(caughtUp).toHaveLength(OVERDUE)
  expect(mostInASecond(caughtUp)).toBeLessThanOrEqual(15)
  expect(poller.monotonic() - startedAtMs).toBeGreaterThan(OVERDUE * 100 - 2000)
  await poller.wake()
  expect(poller.polled).toHaveLength(before + OVERDUE)
})

test('P13: a clock put back by an hour delays no check by more than its interval', async () => {
  const poller = await openPoller(20, 1000)
  poller.pass(60_000)
  await poller.wake()
  poller.jump(-HOUR_MS)
  await poller.wake()
  expect(poller.polled).toHaveLength(20)
  // The full interval is an hour, plus up to a tenth.
  for (let minutes = 0; minutes < 67; minutes++) {
    poller.pass(60_000)
    await poller.wake()
  }
  expect(new Set(poller.polled.slice(20).map(({ parcelId }) => parcelId)).size).toBe(20)
  expect(poller.polled.length).toBeLessThanOrEqual(60)
})

test('P13: a clock put forward by a day and back neither stalls polls nor exceeds the rate', async () => {
  const poller = await openPoller(40, 10)
  poller.pass(60_000)
  await poller.wake()
  poller.jump(24 * HOUR_MS)
  await poller.wake()
  expect(poller.polled.length).toBeLessThanOrEqual(80)
  expect(mostInASecond(poller.polled)).toBeLessThanOrEqual(15)
  poller.jump(-24 * HOUR_MS)
  const before = poller.polled.length
  await poller.wake()
  for (let minutes = 0; minutes < 67; minutes++) {
    poller.pass(60_000)
    await poller.wake()
  }
  expect(new Set(poller.polled.slice(before).map(({ parcelId }) => parcelId)).size).toBe(40)
  expect(mostInASecond(poller.polled.slice(before))).toBeLessThanOrEqual(15)
})

test('P13: a clock that was put back while the relay was down is noticed at the next start', async () => {
  const shifts: number[] = []
  const shiftSchedule = async ({ byMs }: { readonly byMs: number }) => {
    shifts.push(byMs)
    return null
  }
  const clock = { now: () => NOON, monotonic: () => 5 }
  await createClockRollback({ write: { shiftSchedule }, clock, log, onShifted: () => undefined }, NOON + HOUR_MS)()
  await createClockRollback({ write: { shiftSchedule }, clock, log, onShifted: () => undefined }, NOON - HOUR_MS)()
  expect(shifts).toEqual([HOUR_MS])
})

test('P13: a clock put back is noticed within seconds, however rarely the poller wakes', async () => {
  const { url } = await openCarrier()
  onTestFinished(closeOpened)
  const relay = await relayOfTest({ poll: { cron: '0 0 1 1 *' } }, { carrierUrl: url })
  const real = Date.now
  const put = vi.spyOn(Date, 'now').mockImplementation(() => real() - HOUR_MS)
  onTestFinished(() => put.mockRestore())
  const told = () => relay.lines.some(({ message }) => message.startsWith('the clock was put back'))
  await expect.poll(told, { timeout: 60_000 }).toBe(true)
})

test('P13: two simultaneous checks of the clock shift the schedule only once', async () => {
  const turn = Promise.withResolvers<null>()
  const shifts: number[] = []
  const shiftSchedule = async ({ byMs }: { readonly byMs: number }) => {
    shifts.push(byMs)
    return await turn.promise
  }
  const clock = { now: () => NOON, monotonic: () => 5 }
  const follow = createClockRollback({ write: { shiftSchedule }, clock, log, onShifted: () => undefined }, NOON + HOUR_MS)
  const followed = Promise.all([follow(), follow()])
  turn.resolve(null)
  await followed
  expect(shifts).toEqual([HOUR_MS])
})

test('P12: when a poller dies its parcels are due again, and the next poller polls each', async () => {
  const poller = await openPoller(8, 1000)
  poller.pass(60_000)
  const claimed = await poller.writes.claimDuePolls({ nowMs: poller.now(), limit: 4, leaseMs: 300_000 })
  expect(claimed).toHaveLength(4)
  await poller.wake()
  expect(poller.polled).toHaveLength(4)
  poller.pass(301_000)
  await poller.wake()
  expect(new Set(poller.polled.map(({ parcelId }) => parcelId)).size).toBe(8)
})

const upstream = z.object({
  credentials: z.string(),
  budget: z.object({ callsToday: z.number() }),
  breaker: z.object({ state: z.string(), failures: z.number(), restSeconds: z.number(), since: z.string().nullable() }),
  lastFailure: z.object({ reason: z.string() }).nullable(),
})

async function lookUpstream(internalUrl: string) {
  return upstream.parse(await (await ask(internalUrl, await logIn(internalUrl, ADMIN), '/relay/upstream')).json())
}

test('P1: a carrier that is down is hardly called, and reported until an app’s request succeeds', async () => {
  const world = await startWorld()
  onTestFinished(() => world.stop())
  const number = 'BR100000001SE'
  world.carrier.says.set(number, () => answerBody({ trackingIds: ['93000001'] }))
  world.carrier.setDown(true)
  for (let at = 0; at < 8; at++) await world.get(`/v1/status/BR10000002${at}SE/all`)
  const resting = await lookUpstream(world.internalUrl)
  expect(resting.breaker).toMatchObject({ state: 'open', failures: 5 })
  expect(resting.lastFailure).toEqual({ reason: 'network' })
  const calls = world.carrier.asked.urls.length
  const refused = await world.get(`/v1/status/${number}/all`)
  expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([503, true])
  expect(world.carrier.asked.urls).toHaveLength(calls)
  expect(await (await fetch(`${world.internalUrl}/readyz`)).json()).toMatchObject({ status: 'ready', upstream: { breaker: 'open' } })
  expect(await world.metric('relay_carrier_resting')).toBe(1)
  world.carrier.setDown(false)
  await eventually(async () => (await world.get(`/v1/status/${number}/all`)).status === 200)
  const told = world.lines.filter(({ level, message }) => level !== 'debug' && message.includes('the carrier'))
  expect(told.map(({ level, message }) => `${level}: ${message}`)).toEqual([
    expect.stringContaining('warn: the carrier is down, or cannot be reached'),
    'info: the carrier accepts the credentials',
    'info: the carrier answers again',
  ])
  expect(world.lines.filter(({ level, fields }) => level !== 'debug' && 'err' in fields)).toEqual([])
  expect((await lookUpstream(world.internalUrl)).breaker).toEqual({ state: 'closed', failures: 0, restSeconds: 0, since: null })
})

test('P12: the calls of the day continue to count after a restart', async () => {
  const folder = temporaryFolder()
  const { url } = await openCarrier()
  onTestFinished(closeOpened)
  const start = () => relayOfTest({ poll: { cron: '0 0 1 1 *' } }, { folder, carrierUrl: url })
  const first = await start()
  const token = await logIn(first.internalUrl)
  for (let at = 0; at < 7; at++) await ask(first.internalUrl, token, `/v1/status/DAY00${at}/all`)
  const { budget } = await lookUpstream(first.internalUrl)
  expect(budget.callsToday).toBeGreaterThanOrEqual(8)
  await first.stop()
  const second = await start()
  // The relay's own login counts as one more call.
  await eventually(async () => (await lookUpstream(second.internalUrl)).budget.callsToday === budget.callsToday + 1)
})

test('T1: a crash loop tries refused credentials at most three times in fifteen minutes', async () => {
  const folder = temporaryFolder()
  const { url, asked } = await openCarrier({ token: (_request, response) => void response.writeHead(401).end() })
  onTestFinished(closeOpened)
  for (let at = 0; at < byForm(3, 5); at++) {
    const relay = await relayOfTest({ poll: { cron: '0 0 1 1 *' } }, { folder, carrierUrl: url })
    const token = await logIn(relay.internalUrl)
    expect((await ask(relay.internalUrl, token, `/v1/status/CRASH0${at}/all`)).status).toBe(503)
    if (at > 0) expect((await lookUpstream(relay.internalUrl)).credentials).toBe('refused')
    await relay.stop()
  }
  expect(asked.token).toBeLessThanOrEqual(2)
})
