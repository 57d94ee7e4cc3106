import { describe, expect, test } from 'vitest'
import { createCarrierBreaker } from '../../../../src/core/carrier/call/carrier-breaker.ts'
import { createCarrierLog } from '../../../../src/core/carrier/call/carrier-log.ts'
import type { StatusOutcome } from '../../../../src/core/carrier/call/status-call.ts'
import type { IncomingPoll } from '../../../../src/core/domain/history/recording.ts'
import { callsAllowedNow } from '../../../../src/core/domain/polling/breaker.ts'
import type { UnavailableReason } from '../../../../src/core/domain/polling/carrier-answer.ts'
import { createClaimAnswered, createPoller, createPollsUnderWay } from '../../../../src/core/flow/polling/poller.ts'
import { createRefresh } from '../../../../src/core/flow/polling/refresh.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { sqlite } from '../../../../src/upkeep/sqlite-engine.ts'
import { aPoll } from '../../../support/history/builders.ts'
import { HOUR_MS, MINUTE_MS, NOON } from '../../../support/runner/constants.ts'
import { onlyLong } from '../../../support/runner/long-form.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

const CONCURRENCY = 4
const NOT_MADE: StatusOutcome = { kind: 'unavailable', reason: 'timeout', detail: 'withdrawn', conclusive: false }
const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** Opens the poller with its breaker on a real store, and a carrier whose answers the test sets. */
async function openFailing(
  fails: (identifier: string) => boolean,
  reason: UnavailableReason = 'server_error',
  { engine = sqlite, random = () => 0 }: { readonly engine?: Engine; readonly random?: () => number } = {},
) {
  const store = await openStore(NOON, engine)
  const clock = { now: store.now, monotonic: () => store.now() - NOON }
  const asked: string[] = []
  const answerTo = (identifier: string, language: string): StatusOutcome => {
    asked.push(identifier)
    if (fails(identifier)) return { kind: 'unavailable', reason, detail: 'a status', conclusive: true, ofQuestion: true }
    const observation = aPoll({ asked: identifier, language, askedAtMs: clock.now(), trackingIds: [`9${identifier.slice(2)}`] })
    return { kind: 'found', observation }
  }
  const breaker = createCarrierBreaker({
    clock,
    log: silent,
    answeredBefore: () => store.reads.answeredParcels(),
    isErased: async (identifier) => (await store.writes.erasedAtMs({ identifier, nowMs: store.now() })) !== null,
    check: async ({ identifier, language }) => answerTo(identifier, language),
    random,
  })
  const fetchAll = async (question: Parameters<Parameters<typeof createRefresh>[0]['carrier']['fetchAll']>[0]) => {
    const outcome = await breaker.guard(question, async () => answerTo(question.identifier, question.language))
    return createCarrierLog(clock, silent).record(outcome ?? NOT_MADE)
  }
  const { reads, writes: write } = store
  const recorder = {
    async submit(incoming: IncomingPoll) {
      const [outcome] = (await store.record(incoming)).outcomes
      if (outcome === undefined) throw new Error('a batch without an outcome')
      return outcome
    },
  }
  const meter = { pollEnded() {}, missedPush() {} }
  const refresh = createRefresh(
    { carrier: { fetchAll }, recorder, reads, write, meter, clock, failsSinceMs: () => breaker.state().sinceMs },
    { languages: ['en'] },
  )
  const pass = createPoller(
    {
      write,
      refresh,
      underWay: createPollsUnderWay(),
      meter,
      clock,
      log: silent,
      isQuiet: () => false,
      callsAllowed: () => callsAllowedNow(breaker.state(), CONCURRENCY),
      failsSinceMs: () => breaker.state().sinceMs,
      claimAnswered: createClaimAnswered({ reads, write, clock }, random),
    },
    { concurrency: CONCURRENCY },
  )
  return {
    ...store,
    asked,
    breaker,
    /** Lets the poller do all it can now, and moves the clock on by a second. */
    async second() {
      await breaker.lookAgain()
      while ((await pass()) === 'busy');
      store.pass(1000)
    },
  }
}

/** Returns numbers from 0 to 1 that are spread evenly, the same in every run. */
function golden(): () => number {
  let at = 0
  return () => (at++ * 0.618_033_988_749_895) % 1
}

const failing = (at: number) => `AF${1000 + at}`
const healthy = (at: number) => `AH${2000 + at}`

test('whether the carrier answers is not asked about a parcel that was erased', async () => {
  const asksAfter = async (isErased: boolean) => {
    const { writes, second, asked } = await openFailing(() => true)
    await writes.watch({ identifier: failing(0), nowMs: NOON })
    for (let at = 0; at < 600 && asked.length < 2; at++) await second()
    await writes.useTombstoneKey(Buffer.alloc(32, 1))
    if (isErased) await writes.eraseParcels({ identifiers: [failing(0)], nowMs: NOON, dryRun: false })
    else await writes.unwatch({ identifier: failing(0) })
    const before = asked.length
    for (let at = 0; at < 60; at++) await second()
    return asked.length - before
  }
  expect([await asksAfter(true), (await asksAfter(false)) > 0]).toEqual([0, true])
})

test('DOMAIN 6.1: thirty parcels that always fail do not keep thirty others from being polled', async () => {
  const { writes, second, asked, reads } = await openFailing((identifier) => identifier.startsWith('AF'))
  await writes.watchMany({ identifiers: Array.from({ length: 30 }, (_, at) => failing(at)), nowMs: NOON - HOUR_MS })
  await writes.watchMany({ identifiers: Array.from({ length: 30 }, (_, at) => healthy(at)), nowMs: NOON - HOUR_MS / 2 })
  // No poll has succeeded yet, so the poller sends single probes until one happens to reach a healthy parcel.
  const hasAskedAll = () => new Set(asked.filter((identifier) => identifier.startsWith('AH'))).size === 30
  for (let at = 0; at < 3600 && !hasAskedAll(); at++) await second()
  expect(hasAskedAll()).toBe(true)
  // Each failing parcel waits longer each time: tries come after 1, 3, 7, 15 and 31 minutes within this hour.
  for (let at = 0; at < 30; at++) expect(asked.filter((identifier) => identifier === failing(at)).length).toBeLessThanOrEqual(6)
  expect((await reads.inspectParcel(failing(0)))?.state.failures).toBeGreaterThan(0)
})

test('DOMAIN 6.1: parcels that begin to fail do not delay others, or open the breaker for long', async () => {
  let broken = false
  const { writes, second, asked, breaker, pass } = await openFailing((identifier) => broken && identifier.startsWith('AF'))
  const identifiers = Array.from({ length: 60 }, (_, at) => (at < 30 ? failing(at) : healthy(at)))
  await writes.watchMany({ identifiers, nowMs: NOON - HOUR_MS })
  for (let at = 0; at < 10; at++) await second()
  expect(new Set(asked).size).toBe(60)
  broken = true
  pass(12 * HOUR_MS)
  asked.length = 0
  for (let at = 0; at < 300; at++) await second()
  expect(new Set(asked.filter((identifier) => identifier.startsWith('AH'))).size).toBe(30)
  expect(breaker.state().state).toBe('closed')
})

test('DOMAIN 6.1: a carrier that is down is probed, and only polled parcels count as failed', async () => {
  const { writes, second, asked, breaker, reads } = await openFailing(() => true)
  const identifiers = Array.from({ length: 60 }, (_, at) => failing(at))
  await writes.watchMany({ identifiers, nowMs: NOON - HOUR_MS })
  for (let at = 0; at < 120; at++) await second()
  expect(breaker.state().state).toBe('open')
  // A few calls come at first, then probes after 5, 10, 20, 40 and 80 seconds.
  expect(asked.length).toBeLessThan(20)
  const states = await Promise.all(identifiers.map(async (identifier) => (await reads.inspectParcel(identifier))?.state))
  const failures = states.reduce((sum, state) => sum + (state?.failures ?? 0), 0)
  expect(failures).toBe(asked.length)
})

test('6.8: thirty parcels that fail, watched just before thirty others, delay these by seconds', async () => {
  const { writes, second, asked, pass } = await openFailing((identifier) => identifier.startsWith('AF'), 'server_error', {
    random: golden(),
  })
  await writes.watchMany({ identifiers: Array.from({ length: 30 }, (_, at) => failing(at)), nowMs: NOON })
  await writes.watchMany({ identifiers: Array.from({ length: 30 }, (_, at) => healthy(at)), nowMs: NOON + 1 })
  pass(2 * MINUTE_MS)
  const hasAskedAll = () => new Set(asked.filter((identifier) => identifier.startsWith('AH'))).size === 30
  let seconds = 0
  for (; seconds < 3600 && !hasAskedAll(); seconds++) await second()
  expect(seconds).toBeLessThanOrEqual(45)
})

describe.each(engines)('the breaker on $name', (engine) => {
  test('6.8: a thousand numbers answered 422 beside good ones open no breaker', async () => {
    const { writes, second, asked, breaker, pass } = await openFailing((identifier) => identifier.startsWith('AF'), 'rejected', { engine })
    await writes.watchMany({ identifiers: [healthy(0), healthy(1)], nowMs: NOON - HOUR_MS })
    await second()
    await writes.watchMany({ identifiers: Array.from({ length: 1000 }, (_, at) => failing(at)), nowMs: NOON })
    pass(2 * MINUTE_MS)
    const states = new Set<string>()
    for (let at = 0; at < 2; at++) {
      await second()
      states.add(breaker.state().state)
      pass(MINUTE_MS)
    }
    expect(new Set(asked).size).toBe(1002)
    expect([...states]).toEqual(['closed'])
  })

  test('6.8: before calls pause, and as the probe, a parcel is asked that was answered before', async () => {
    let isDown = false
    const { writes, second, asked, breaker, pass } = await openFailing(() => isDown, 'rejected', { engine })
    await writes.watchMany({ identifiers: [healthy(0), healthy(1), healthy(2)], nowMs: NOON - HOUR_MS })
    await second()
    isDown = true
    await writes.watchMany({ identifiers: Array.from({ length: 30 }, (_, at) => failing(at)), nowMs: NOON })
    pass(2 * MINUTE_MS)
    asked.length = 0
    await second()
    expect(breaker.state()).toMatchObject({ state: 'open', sinceMs: NOON + 2 * MINUTE_MS + 1000 })
    expect(asked.filter((identifier) => identifier.startsWith('AH'))).toHaveLength(1)
    isDown = false
    asked.length = 0
    for (let at = 0; at < 10 && breaker.state().state !== 'closed'; at++) await second()
    expect([breaker.state().state, asked[0]?.slice(0, 2)]).toEqual(['closed', 'AH'])
  })
})

test.each<UnavailableReason>(['rejected', 'redirect', 'bad_response'])(
  '6.8, P1: a carrier that answers only %s fails after 20 calls, and parcels fall due',
  async (reason) => {
    const { writes, second, asked, breaker, reads, now } = await openFailing(() => true, reason)
    await writes.watchMany({ identifiers: Array.from({ length: 60 }, (_, at) => failing(at)), nowMs: NOON - HOUR_MS })
    for (let at = 0; at < 30; at++) await second()
    expect(breaker.state().state).toBe('open')
    expect(asked.length).toBeLessThan(35)
    expect((await reads.counts(now())).overdue).toBeGreaterThan(25)
  },
)

test.each<UnavailableReason>(['rejected', 'redirect', 'bad_response'])(
  '6.8: two parcels answered only with %s show within 15 minutes that the carrier fails',
  async (reason) => {
    const { writes, second, breaker, pass } = await openFailing(() => true, reason)
    await writes.watchMany({ identifiers: [failing(0), failing(1)], nowMs: NOON - HOUR_MS })
    for (let at = 0; at < 14; at++) {
      await second()
      pass(MINUTE_MS - 1000)
    }
    expect(breaker.state().state).toBe('closed')
    for (let at = 0; at < 2; at++) {
      await second()
      pass(MINUTE_MS)
    }
    expect(breaker.state()).toMatchObject({ state: 'open', sinceMs: NOON })
  },
)

test.each<UnavailableReason>(['network', 'timeout', 'server_error'])(
  '6.8, P1: two watched parcels show within seconds that the carrier fails: %s',
  async (reason) => {
    let isDown = false
    const { writes, second, breaker, pass } = await openFailing(() => isDown, reason)
    await writes.watchMany({ identifiers: [healthy(0), healthy(1)], nowMs: NOON - HOUR_MS })
    await second()
    isDown = true
    pass(12 * HOUR_MS)
    for (let at = 0; at < 8; at++) await second()
    expect(breaker.state().state).toBe('open')
  },
)

/** Lets `count` days pass. The poller wakes four times a day. */
async function days(count: number, { second, pass }: Pick<Awaited<ReturnType<typeof openFailing>>, 'second' | 'pass'>): Promise<void> {
  for (let at = 0; at < count * 4; at++) {
    await second()
    pass(6 * HOUR_MS)
  }
}

test('DOMAIN 6.1: a number that the carrier refuses for a month is not polled any more', async () => {
  const { writes, reads, asked, ...poller } = await openFailing((identifier) => identifier.startsWith('AF'), 'rejected')
  // Without a parcel that is answered, the carrier itself would seem to fail, and time in which it fails makes no parcel stale.
  await writes.watchMany({ identifiers: [failing(0), healthy(0)], nowMs: NOON })
  await days(40, poller)
  expect((await reads.inspectParcel(failing(0)))?.state).toMatchObject({ stopped: 'unknown', nextPollAtMs: null })
  asked.length = 0
  await days(2, poller)
  expect(asked).toEqual([])
})

test('DOMAIN 6.1: a carrier that refuses every question for 40 days makes no parcel stale', async () => {
  let isDown = false
  const { writes, reads, ...poller } = await openFailing(() => isDown, 'rejected')
  await writes.watchMany({ identifiers: [healthy(0), healthy(1)], nowMs: NOON })
  await days(1, poller)
  isDown = true
  await days(40, poller)
  isDown = false
  await days(2, poller)
  expect((await reads.inspectParcel(healthy(0)))?.state).toMatchObject({ stopped: null, failures: 0 })
})

onlyLong(test)('DOMAIN 6.1: a carrier that answers no call for 40 days makes no parcel stale', async () => {
  let isDown = false
  const { writes, reads, ...poller } = await openFailing(() => isDown)
  await writes.watchMany({ identifiers: [healthy(0), healthy(1)], nowMs: NOON })
  await days(1, poller)
  isDown = true
  await days(40, poller)
  isDown = false
  await days(2, poller)
  expect((await reads.inspectParcel(healthy(0)))?.state).toMatchObject({ stopped: null, failures: 0 })
  await days(40, poller)
  expect((await reads.inspectParcel(healthy(0)))?.state).toMatchObject({ stopped: 'stale' })
})
