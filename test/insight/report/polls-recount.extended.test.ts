import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { createTallies } from '../../../src/console/tallies/tallies.ts'
import type { QuestionEnd } from '../../../src/core/domain/admin/tally.ts'
import { DAY_MS, dayIn } from '../../../src/core/domain/calendar.ts'
import { createReports } from '../../../src/insight/report/report.ts'
import { startSandbox } from '../../../src/trial/sandbox/sandbox.ts'
import { closeOpened, connect } from '../../core/carrier/carrier-double.ts'
import { pushBody } from '../../support/history/builders.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { CARRIER_LOGIN, logIn, SHARED_KEY } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { HOUR_MS, MINUTE_MS } from '../../support/runner/constants.ts'
import { engines } from '../../support/store/engines.ts'
import { openStore } from '../../support/store/write-side.ts'

afterAll(closeOpened)

const ZONE = 'Europe/Stockholm'
const OCTOBER = Date.UTC(2026, 8, 30, 22)
const DAYS = 31
const QUESTIONS_A_DAY = 6

type Calls = ReturnType<Awaited<ReturnType<typeof startSandbox>>['stats']>['calls']
type Polls = Record<QuestionEnd, number>

/** Counts how the questions between two looks ended, by the sandbox's own record of its answers. */
function recount(before: Calls, after: Calls, isSlow: boolean): Polls {
  const path = '/v1/status/{number}/all'
  const of = (...statuses: readonly number[]) =>
    statuses.reduce((sum, status) => sum + (after[path]?.[status] ?? 0) - (before[path]?.[status] ?? 0), 0)
  const answered = of(200, 404)
  return { answered, slow: isSlow ? answered : 0, failed: of(500, 502, 503), limited: of(429) }
}

const FAULTS = [{}, { rateLimited: 0.4 }, { serverErrors: 0.4 }, {}, { unauthorized: 0.4 }] as const
/** On these days of five, every answer takes longer than five seconds of the relay's clock. */
const SLOW = 3

describe.each(engines)('the questions of a month on $name', (engine) => {
  test('10.8: answered, slow, failed and 429 of each day equal a recount from the sandbox’s own record', async () => {
    const store = await openStore(OCTOBER, engine)
    let monotonicMs = 0
    let latencyMs = 0
    const clock = { now: store.now, monotonic: () => monotonicMs }
    const pass = (ms: number) => {
      store.pass(ms)
      monotonicMs += ms
    }
    const sandbox = await startSandbox({
      parcels: 0,
      speed: 0,
      seed: 7,
      anchorMs: OCTOBER,
      username: 'acme',
      password: 'canary-password-Zq8',
      // It asks for the time when it looks at a token, so in the middle of a question.
      now: () => {
        monotonicMs += latencyMs
        return store.now()
      },
    })
    onTestFinished(() => sandbox.stop())
    sandbox.addParcel({ trackingNumber: 'AB100000001SE', trackingIds: ['370000000001'] })
    sandbox.scan('AB100000001SE', { status: 'Created', atMs: OCTOBER - HOUR_MS })
    const tallies = createTallies({ write: store.writes, process: 'relay', freeBytes: () => 1, zone: () => ZONE, clock })
    const { carrier } = connect(sandbox.url, { clock, onPolled: tallies.polled })
    const wanted = new Map<string, Polls>()
    for (let day = 0; day < DAYS; day++) {
      store.setClock(OCTOBER + day * DAY_MS + (day % 2 === 0 ? 2 : 22) * HOUR_MS)
      sandbox.setFaults({ rateLimited: 0, serverErrors: 0, unauthorized: 0, ...FAULTS[day % FAULTS.length] })
      latencyMs = day % FAULTS.length === SLOW ? 6000 : 0
      const before = sandbox.stats().calls
      for (let nth = 0; nth < QUESTIONS_A_DAY; nth++) {
        const identifier = nth % 3 === 2 ? 'AB199999999SE' : 'AB100000001SE'
        await carrier.fetchAll({ identifier, language: 'en', priority: 'schedule', spender: 'schedule' })
        pass(5 * MINUTE_MS)
      }
      const name = new Date(dayIn(ZONE, store.now())).toISOString().slice(0, 10)
      wanted.set(name, recount(before, sandbox.stats().calls, latencyMs > 0))
      await tallies.flush()
    }
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    const settings = () => ({ zone: ZONE, retention: { reportsMs: 1830 * DAY_MS }, poll: { missedPushGraceMs: 0 } })
    const report = await createReports({ ...store, write: store.writes, clock, log, settings }).read('2026-10')
    expect(report.days).toHaveLength(DAYS)
    for (const { day, counts } of report.days) {
      const { answered, slow, failed, limited } = counts
      expect([day, { answered, slow, failed, limited }]).toEqual([day, wanted.get(day)])
    }
    for (const name of ['answered', 'slow', 'failed', 'limited'] as const) expect([name, report.counts[name] > 5]).toEqual([name, true])
  })
})

test('10.8: a relay’s report counts its questions, and the pushes with a bad signature, as the sandbox does', async () => {
  const sandbox = await startSandbox({ parcels: 12, speed: 0, seed: 3, sharedKey: SHARED_KEY, ...CARRIER_LOGIN })
  onTestFinished(() => sandbox.stop())
  await sandbox.finish()
  const relay = await relayOfTest({}, { carrierUrl: sandbox.url })
  sandbox.setWebhookUrls([`${relay.publicUrl}/webhooks/status`])
  const statuses: (number | null)[] = []
  for (let nth = 0; nth < 9; nth++) {
    const sharedKey = nth % 3 === 0 ? SHARED_KEY : `another-key-${nth}-another-key-another`
    for (const { status } of await sandbox.push({ body: pushBody({ trackingIds: [`7000${nth}`] }).toString(), sharedKey }))
      statuses.push(status)
  }
  expect(statuses.filter((status) => status === 401)).toHaveLength(6)
  const headers = { authorization: `Bearer ${await logIn(relay.internalUrl)}` }
  const ask = async (identifier: string) => await (await fetch(`${relay.internalUrl}/v1/status/${identifier}/all`, { headers })).text()
  const numbers = sandbox.world.parcels().map(({ trackingNumber }) => trackingNumber)
  sandbox.setFaults({ unauthorized: 0.2, serverErrors: 0.2 })
  for (const number of [...numbers, 'AB199999999SE']) await ask(number)
  sandbox.setFaults({ unauthorized: 0, serverErrors: 0, rateLimited: 1, retryAfterSeconds: 1 })
  await ask('AB188888888SE')
  const operate = await operatorOf(relay)
  // The counts are saved every ten seconds.
  await expect
    .poll(
      async () => {
        const { counts } = Object((await operate('GET', '/relay/report')).body)
        const { answered, failed, limited, badSignature } = counts
        const { slow: _slow, ...wanted } = recount({}, sandbox.stats().calls, false)
        return [
          { answered, failed, limited, badSignature },
          { ...wanted, badSignature: 6 },
        ].map((one) => JSON.stringify(one))
      },
      { timeout: 90_000, interval: 500 },
    )
    .toSatisfy(([counted, wanted]: readonly string[]) => counted === wanted && counted?.includes('"limited":0') === false)
})
