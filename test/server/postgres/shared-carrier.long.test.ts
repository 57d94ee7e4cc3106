import { fail } from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createSharedFlight } from '../../../src/core/flow/shared-flight.ts'
import { createVault } from '../../../src/core/ops/vault.ts'
import { openSharedCarrier } from '../../../src/server/postgres/postgres-engine.ts'
import { closeOpened, connect, json, openCarrier, password, refusingUrl } from '../../core/carrier/carrier-double.ts'
import { HOUR_MS } from '../../support/runner/constants.ts'
import { withClient } from '../../support/store/postgres-client.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'

const KEY = Buffer.alloc(32, 'at rest')
const vault = createVault({ list: () => [KEY], first: () => KEY })

type Options = Parameters<typeof connect>[1]

async function openReplicas(carrierUrl: string, options: readonly Options[]) {
  const { url } = await createDatabase()
  onTestFinished(closeOpened)
  const replicas = options.map((own) => {
    const shared = openSharedCarrier(url)
    const replica = connect(carrierUrl, { shared: { ...shared, vault }, ...own })
    onTestFinished(async () => {
      await replica.carrier.close()
      await shared.close()
    })
    return { ...replica, shared }
  })
  return { url, replicas }
}

function createWitness(lastsMs: () => number) {
  const cameMs: number[] = []
  let present = 0
  let most = 0
  return {
    cameMs,
    most: () => most,
    async during(answer: () => void) {
      cameMs.push(performance.now())
      present += 1
      most = Math.max(most, present)
      await pause(lastsMs())
      present -= 1
      answer()
    },
    mostInASecond: () => Math.max(0, ...cameMs.map((from) => cameMs.filter((at) => at >= from && at <= from + 1000).length)),
  }
}

test('6.4: three replicas together keep within one rate and concurrency, and make use of both', async () => {
  const witness = createWitness(() => 20 + Math.random() * 60)
  const { url } = await openCarrier({
    token: (_request, response) => void witness.during(() => json(response, 200, '{"token":"t"}')),
    status: (_request, response) => void witness.during(() => json(response, 404, '{}')),
  })
  const limits = { ratePerSecond: 40, concurrency: 3, timeoutMs: 60_000 }
  const { replicas } = await openReplicas(url, [limits, limits, limits])
  // On a busy machine the store may answer too late, and a waiting call is refused.
  const untilMade = async (fetch: () => ReturnType<(typeof replicas)[number]['fetchAll']>) => {
    while (areOfBudget([await fetch()]));
  }
  await Promise.all(
    replicas.flatMap(({ fetchAll }, at) => Array.from({ length: 60 }, () => untilMade(() => fetchAll(at === 0 ? 'app' : 'schedule')))),
  )
  expect(witness.cameMs.length).toBe(181)
  expect(witness.most()).toBeLessThanOrEqual(3)
  expect(witness.mostInASecond()).toBeLessThanOrEqual(60)
  // Check only the busiest second, because the total time depends on the machine.
  expect(witness.mostInASecond()).toBeGreaterThanOrEqual(limits.ratePerSecond / 4)
})

test('P12: the day’s calls include those of all replicas, even killed ones', async () => {
  const { url, asked } = await openCarrier({ status: (_request, response) => json(response, 404, '{}') })
  const limits = { callsPerDay: 30 }
  const { replicas, url: database } = await openReplicas(url, [limits, limits, limits])
  const callsToday = async () => {
    await replicas[0]?.carrier.keep()
    return replicas[0]?.carrier.state().budget.callsToday
  }
  // On a busy machine the store may answer too late. Then a call counts although it was not made.
  await vi.waitFor(async () => {
    const answers = await Promise.all(replicas.flatMap(({ fetchAll }) => Array.from({ length: 15 }, () => fetchAll())))
    expect(answers.filter(({ kind }) => kind !== 'not_found')).toSatisfy(areOfBudget)
    expect(await callsToday()).toBe(30)
  })
  const answers = await Promise.all(replicas.map(({ fetchAll }) => fetchAll()))
  expect(answers).toSatisfy(areOfBudget)
  expect(asked.token + asked.status).toBeLessThanOrEqual(30)
  expect(asked.status).toBeGreaterThan(0)
  // A new replica gets no calls either.
  const shared = openSharedCarrier(database)
  onTestFinished(() => shared.close())
  expect(await connect(url, { ...limits, shared: { ...shared, vault } }).fetchAll()).toMatchObject({
    kind: 'unavailable',
    reason: 'budget',
  })
  expect(await callsToday()).toBe(30)
})

const areOfBudget = (answers: readonly Awaited<ReturnType<ReturnType<typeof connect>['fetchAll']>>[]) =>
  answers.every((answer) => answer.kind === 'unavailable' && answer.reason === 'budget')

test('P5: a Retry-After that one replica got stops the calls of all replicas', async () => {
  const { url, asked } = await openCarrier({ status: (_request, response) => json(response, 429, '', { 'retry-after': '600' }) })
  const { replicas } = await openReplicas(url, [{}, {}])
  for (const { fetchAll } of replicas) expect(await fetchAll()).toMatchObject({ kind: 'unavailable', reason: 'rate_limited' })
  expect(asked.status).toBe(1)
})

test('6.5: one request gets the token for all replicas, and the token is stored encrypted', async () => {
  let valid = 'token-1'
  const { url, asked } = await openCarrier({
    status: (request, response) => json(response, request.headers.authorization === `Bearer ${valid}` ? 404 : 401, '{}'),
  })
  const { replicas, url: database } = await openReplicas(url, [{}, {}, {}])
  const askAll = () => Promise.all(replicas.flatMap(({ fetchAll }) => [fetchAll(), fetchAll()]))
  expect((await askAll()).map(({ kind }) => kind)).toEqual(Array.from({ length: 6 }, () => 'not_found'))
  expect(asked.token).toBe(1)
  valid = 'token-2'
  expect((await askAll()).map(({ kind }) => kind)).toEqual(Array.from({ length: 6 }, () => 'not_found'))
  expect(asked.token).toBe(2)
  const { rows } = await withClient(database, (client) => client.query('select * from carrier_token'))
  const text = JSON.stringify(rows)
  expect(text).toContain('"sealed":"ey')
  expect([text.includes('token-2'), text.includes(password)]).toEqual([false, false])
})

test('6.4: credentials that were refused for one replica are not tried by other replicas', async () => {
  const { url, asked } = await openCarrier({ token: (_request, response) => json(response, 401, '{}') })
  const { replicas } = await openReplicas(url, [{}, {}, { password: () => 'another one' }])
  const [first, second, third] = replicas
  expect(await first?.fetchAll()).toMatchObject({ kind: 'unavailable', reason: 'credentials' })
  expect(await second?.fetchAll()).toMatchObject({ kind: 'unavailable', reason: 'credentials' })
  expect([asked.token, second?.carrier.state().credentials]).toEqual([1, 'refused'])
  await third?.fetchAll()
  expect(asked.token).toBe(2)
})

test('6.4: a 403 gets one new token for all replicas, once in 15 minutes', async () => {
  let isOpen = true
  const { url, asked } = await openCarrier({ status: (_request, response) => json(response, isOpen ? 404 : 403, '{}') })
  const { replicas } = await openReplicas(url, [{}, {}, {}])
  const askAll = () => Promise.all(replicas.map(({ fetchAll }) => fetchAll()))
  await askAll()
  isOpen = false
  const tokens: number[] = []
  for (let minutes = 0; minutes < 32; minutes++) {
    await askAll()
    tokens.push(asked.token)
    for (const { move } of replicas) move(60_000)
  }
  expect([tokens[0], tokens[14], tokens[16], tokens[29], tokens[31]]).toEqual([2, 2, 3, 3, 4])
})

test('6.4: one of the replicas that start together logs in, and all learn the result', async () => {
  const passwords = ['mistyped']
  const { url, asked } = await openCarrier({
    token: (_request, response) => json(response, passwords.at(-1) === 'right' ? 200 : 401, '{"token":"t"}'),
    status: (_request, response) => json(response, 429, '{}', { 'retry-after': '80' }),
  })
  const own = { password: () => passwords.at(-1) ?? '' }
  const { replicas } = await openReplicas(url, [own, own, own])
  const logInAll = () => Promise.all(replicas.map(({ carrier }) => carrier.logIn()))
  const told = () => replicas.map(({ carrier }) => carrier.state().credentials)
  await logInAll()
  expect([asked.token, told()]).toEqual([1, ['refused', 'refused', 'refused']])
  passwords.push('right')
  await logInAll()
  await replicas[0]?.fetchAll()
  expect([asked.token, told()]).toEqual([2, ['obtained', 'obtained', 'obtained']])
})

test('P13: if the server’s clock is put back, the wait after refused credentials stays the same', async () => {
  const { url: carrierUrl, asked } = await openCarrier({ token: (_request, response) => json(response, 401, '{}') })
  const { url, replicas } = await openReplicas(carrierUrl, [{}, {}, {}])
  const [first, second, third] = replicas
  const restMs = async () => (await first?.shared.token.read())?.refusedForMs ?? 0
  const change = (statement: string, ms: number) => withClient(url, (client) => client.query(statement, [ms]))
  /** Moves the stored times back, as if the server's clock had been put ahead by `byMs`. */
  const moveClock = async (byMs: number) => {
    await change('update carrier_budget set seen_ms = seen_ms - $1', byMs)
    await change('update carrier_token set refused_until_ms = refused_until_ms - $1', byMs)
  }
  await first?.fetchAll()
  // The first wait is only a second. Lengthen it, as many refusals would.
  await change('update carrier_token set refused_until_ms = refused_until_ms + $1', HOUR_MS / 4)
  const wholeMs = await restMs()
  await moveClock(-HOUR_MS)
  // The stored clock never goes back. It stands still until somebody uses the budget.
  expect(await restMs()).toBeLessThan(wholeMs + HOUR_MS / 12)
  expect(await second?.fetchAll()).toMatchObject({ kind: 'unavailable', reason: 'credentials' })
  await second?.carrier.keep()
  await moveClock(Math.floor(wholeMs / 2))
  expect([(await restMs()) > 0, asked.token]).toEqual([true, 1])
  await moveClock(wholeMs)
  expect(await restMs()).toBe(0)
  await third?.fetchAll()
  expect(asked.token).toBe(2)
})

test('P5: if the token endpoint asks one replica to wait, all replicas wait', async () => {
  const { url, asked } = await openCarrier({ token: (_request, response) => json(response, 429, '', { 'retry-after': '600' }) })
  const { replicas } = await openReplicas(url, [{}, {}])
  for (const { fetchAll } of replicas) expect(await fetchAll()).toMatchObject({ kind: 'unavailable', retryAfterMs: expect.any(Number) })
  expect(asked.token).toBe(1)
})

test.each([
  ['network', 'the carrier is down, or cannot be reached', refusingUrl],
  [
    'server_error',
    'the carrier is down, or cannot be reached',
    async () => (await openCarrier({ token: (_, response) => json(response, 500, '') })).url,
  ],
  [
    'rate_limited',
    'the carrier asks for fewer calls',
    async () => (await openCarrier({ token: (_, response) => json(response, 429, '') })).url,
  ],
] as const)('a replica that waits because another got no token (%s) gives the same reason', async (reason, message, open) => {
  const { replicas } = await openReplicas(await open(), [{}, {}])
  for (const { fetchAll } of replicas) expect(await fetchAll()).toMatchObject({ kind: 'unavailable', reason })
  for (const { lines } of replicas) expect(lines.filter((line) => line.includes(message))).toHaveLength(1)
})

test('6.4: if every token is refused, many replicas request no more tokens than one would', async () => {
  const { url, asked } = await openCarrier({ status: (_request, response) => json(response, 401, '{}') })
  const { replicas } = await openReplicas(url, [{}, {}, {}])
  for (let round = 0; round < 3; round++) await Promise.all(replicas.map(({ fetchAll }) => fetchAll()))
  expect(asked.token).toBeLessThanOrEqual(3)
  expect(replicas.map(({ carrier }) => carrier.state().credentials)).toContain('refused')
})

/** Callers at all replicas ask for the same answer. The caller that calls the carrier gets no answer until all others wait for it. */
function flyTogether(replicas: readonly ReturnType<typeof openSharedCarrier>[], callers: number) {
  const held = new Set<number>()
  const together = Array.from({ length: callers }, (_, nth) => {
    const { flights } = replicas[nth % replicas.length] ?? fail('no replica')
    const take: typeof flights.take = async (request) => {
      const turn = await flights.take(request)
      if (turn.kind === 'held') held.add(nth)
      return turn
    }
    return createSharedFlight({ flights: { ...flights, take }, pause: (ms) => pause(ms / 4) })
  })
  return async (key: string, outcomes: readonly ('recorded' | 'not_found' | Error)[]) => {
    let flown = 0
    const flight = {
      async start() {
        held.clear()
        // A caller whose call failed does not wait again.
        const others = callers - 1 - flown
        const outcome = outcomes[flown++] ?? fail('there were more calls than outcomes')
        await vi.waitFor(() => expect(held.size).toBe(others))
        if (outcome instanceof Error) throw outcome
        return outcome
      },
      after: null,
      notFoundForMs: 0,
      endOf: (kind: 'recorded' | 'not_found') => ({ kind, retryAfterMs: null }),
      read: ({ kind }: { readonly kind: string }) => (kind === 'recorded' || kind === 'not_found' ? kind : null),
    }
    const ends = await Promise.allSettled(together.map((fly) => fly(key, flight)))
    return { flown, ends: ends.map((end) => (end.status === 'fulfilled' ? end.value : 'failed')).toSorted() }
  }
}

test('if several replicas want the same answer, one asks, and the others learn the result', async () => {
  const { url } = await createDatabase()
  const replicas = [openSharedCarrier(url), openSharedCarrier(url), openSharedCarrier(url)]
  onTestFinished(async () => void (await Promise.all(replicas.map((one) => one.close()))))
  const thirty = flyTogether(replicas, 30)
  for (const outcome of ['recorded', 'not_found'] as const) {
    expect(await thirty(outcome, [outcome])).toEqual({ flown: 1, ends: Array(30).fill(outcome) })
  }
  // A failed call gives no result, so another caller makes the call.
  const three = flyTogether(replicas, 3)
  expect(await three('failing', [new Error('the first fails'), 'recorded'])).toEqual({ flown: 2, ends: ['failed', 'recorded', 'recorded'] })
})

test('a call whose replica was killed is taken over, and old rows are deleted', async () => {
  const { url } = await createDatabase()
  const { flights, close } = openSharedCarrier(url)
  onTestFinished(close)
  const take = (key: string, waited = false, leaseMs = 1000) => flights.take({ key, leaseMs, waited, notFoundForMs: 0 })
  expect((await take('one', false, 50)).kind).toBe('taken')
  await vi.waitFor(async () => expect((await take('one')).kind).toBe('taken'), { interval: 20 })
  const held = await take('two')
  expect([held.kind, (await take('two')).kind, (await take('two', true)).kind]).toEqual(['taken', 'held', 'held'])
  if (held.kind === 'taken') await flights.end({ key: 'two', holder: held.holder, end: { kind: 'unavailable', retryAfterMs: 7000 } })
  expect(await take('two', true)).toEqual({ kind: 'ended', end: { kind: 'unavailable', retryAfterMs: 7000 } })
  expect((await take('two')).kind).toBe('taken')
  await withClient(url, async (client) => {
    await client.query('update flight set until_ms = 0')
    const last = await take('three')
    if (last.kind === 'taken') await flights.end({ key: 'three', holder: last.holder, end: { kind: 'recorded', retryAfterMs: null } })
    await vi.waitFor(async () => expect((await client.query('select key from flight')).rows).toEqual([{ key: 'three' }]))
  })
})
