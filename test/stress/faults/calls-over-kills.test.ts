import { afterEach, expect, onTestFinished, test } from 'vitest'
import { closeOpened, json, openCarrier } from '../../core/carrier/carrier-double.ts'
import { eventually } from '../../faults/world.ts'
import { onPostgres } from '../../support/relay/on-postgres.ts'
import { ask, logIn, type RelayProcess, spawnRelay, writeConfig } from '../../support/relay/relay.ts'
import { LONG } from '../../support/runner/long-form.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'

afterEach(closeOpened)

/** There are no scheduled polls, so that only apps cause calls. */
const ASLEEP = { poll: { cron: '0 0 1 1 *' }, limits: { unknownPerMinute: 100_000 } }

async function startKillable(path: string): Promise<RelayProcess & { readonly kill: () => Promise<void> }> {
  const relay = await spawnRelay(path)
  const kill = async () => {
    relay.process.kill('SIGKILL')
    await relay.ended
  }
  onTestFinished(kill)
  return { ...relay, kill }
}

/** Asks about new numbers, four at a time, until the relay ends. */
async function askOn(relay: RelayProcess, run: number, statuses: number[] = []): Promise<readonly number[]> {
  const token = await logIn(relay.internalUrl)
  const one = async (lane: number) => {
    for (let at = 0; relay.process.exitCode === null && at < 1000; at++) {
      const answer = await ask(relay.internalUrl, token, `/v1/status/RUN${run}LANE${lane}NO${at}/all`).catch(() => null)
      if (answer === null) return
      statuses.push(answer.status)
      // Once the day's calls are used up, the relay refuses every request, so wait a little before the next.
      if (answer.status === 503) await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  await Promise.all([0, 1, 2, 3].map(one))
  return statuses
}

test('P12: a relay that is killed repeatedly makes no more calls than the day allows', async () => {
  const arrivedAtMs: number[] = []
  const { url, asked } = await openCarrier({
    token: (_request, response) => {
      arrivedAtMs.push(Date.now())
      json(response, 200, '{"token":"t"}')
    },
    status: (_request, response) => {
      arrivedAtMs.push(Date.now())
      json(response, 404, '{}')
    },
  })
  const [callsPerDay, concurrency, kills] = [30, 2, 4]
  const path = writeConfig(temporaryFolder(), url, { ...ASLEEP, upstream: { callsPerDay, ratePerSecond: 100, concurrency } })
  for (let run = 0; run < kills; run++) {
    const relay = await startKillable(path)
    const before = asked.urls.length
    const statuses: number[] = []
    const asking = askOn(relay, run, statuses)
    // Kill the relay after some calls or, once the day's calls are used up, after it has refused a request.
    await eventually(async () => asked.urls.length > before + 8 || statuses.includes(503))
    await relay.kill()
    await asking
  }
  const byDay = Map.groupBy(arrivedAtMs, (atMs) => Math.floor(atMs / 86_400_000))
  expect(Math.max(...[...byDay.values()].map(({ length }) => length))).toBeLessThanOrEqual(callsPerDay)
  // Each kill may waste calls that the relay has counted but not yet sent.
  expect(arrivedAtMs.length).toBeGreaterThanOrEqual(callsPerDay - kills * concurrency)
})

test('P12: two relays on PostgreSQL keep to the budget while one is killed repeatedly', async () => {
  const arrivedAtMs: number[] = []
  let present = 0
  let most = 0
  const witness = (answer: () => void) => {
    arrivedAtMs.push(performance.now())
    most = Math.max(most, ++present)
    setTimeout(() => {
      present -= 1
      answer()
    }, 30)
  }
  const { url } = await openCarrier({
    token: (_request, response) => witness(() => json(response, 200, '{"token":"t"}')),
    status: (_request, response) => witness(() => json(response, 404, '{}')),
  })
  const limits = { callsPerDay: 200, ratePerSecond: 40, concurrency: 2 }
  const path = writeConfig(temporaryFolder(), url, { ...ASLEEP, ...(await onPostgres()), upstream: limits })
  const first = await startKillable(path)
  const asking = [askOn(first, 100)]
  for (let run = 0; run < 4; run++) {
    const relay = await startKillable(path)
    const before = arrivedAtMs.length
    asking.push(askOn(relay, run))
    await eventually(async () => arrivedAtMs.length > before + 20, 3000).catch(() => null)
    await relay.kill()
  }
  // The first relay goes on alone until the day's calls are used up.
  await eventually(async () => arrivedAtMs.length >= limits.callsPerDay - 10)
  await first.kill()
  await Promise.all(asking)
  expect(arrivedAtMs.length).toBeLessThanOrEqual(limits.callsPerDay)
  expect(most).toBeLessThanOrEqual(limits.concurrency)
  const inASecond = arrivedAtMs.map((from) => arrivedAtMs.filter((atMs) => atMs >= from && atMs <= from + 1000).length)
  expect(Math.max(...inASecond)).toBeLessThanOrEqual(1.5 * limits.ratePerSecond)
})

test.each(LONG ? (['status', 'token'] as const) : (['token'] as const))(
  'P5, P12: a Retry-After of the %s endpoint is obeyed after a kill',
  async (endpoint) => {
    const { url, asked } = await openCarrier({
      [endpoint]: (_: unknown, response: Parameters<typeof json>[0]) => json(response, 429, '', { 'retry-after': '600' }),
    })
    const path = writeConfig(temporaryFolder(), url, ASLEEP)
    const first = await startKillable(path)
    const refused = await ask(first.internalUrl, await logIn(first.internalUrl), '/v1/status/PAUSED0001/all')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '600'])
    await first.kill()
    const calls = asked.token + asked.status
    const second = await startKillable(path)
    const again = await ask(second.internalUrl, await logIn(second.internalUrl), '/v1/status/PAUSED0002/all')
    expect([again.status, asked.token + asked.status - calls]).toEqual([503, 0])
    expect(Number(again.headers.get('retry-after'))).toBeGreaterThan(500)
  },
)
