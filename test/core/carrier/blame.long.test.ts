import { afterEach, expect, test } from 'vitest'
import { closeOpened, connect, goodBody, json, openCarrier, until } from './carrier-double.ts'

afterEach(closeOpened)

const many = (count: number, ask: (at: number) => Promise<unknown>) => Promise.all(Array.from({ length: count }, (_, at) => ask(at)))

test('a timeout after a wait for a Retry-After does not count as a failure of the carrier', async () => {
  const { url, asked } = await openCarrier({
    status: (_, response, count) => {
      if (count === 1) return json(response, 429, '', { 'retry-after': '1' })
      // The wait for the Retry-After leaves only 150 ms of the 1,150 ms that a request may take.
      return void setTimeout(() => json(response, 200, goodBody), 300)
    },
  })
  const { carrier, fetchAll } = connect(url, { timeoutMs: 1_150, concurrency: 10 })
  await fetchAll()
  const answers = await many(8, () => fetchAll())
  expect(answers).toEqual(Array.from({ length: 8 }, () => ({ kind: 'unavailable', reason: 'timeout', retryAfterMs: 1_000 })))
  expect(asked.status).toBe(9)
  expect(carrier.state()).toMatchObject({ breaker: { state: 'closed', failures: 0 }, lastFailure: { reason: 'rate_limited' } })
  expect((await fetchAll()).kind).toBe('found')
})

test('requests that the carrier leaves unanswered count as its failures', async () => {
  const { url } = await openCarrier({ status: () => null })
  const { carrier, fetchAll } = connect(url, { timeoutMs: 3000, concurrency: 10 })
  await many(8, (at) => fetchAll('app', `PD1000${at}`))
  expect(carrier.state().breaker).toMatchObject({ state: 'open', failures: 8 })
})

test('a failed token request counts once, however many requests wait for the token', async () => {
  const { url, asked } = await openCarrier({ token: (_, response) => json(response, 500, '') })
  const { carrier, fetchAll } = connect(url)
  await many(20, () => fetchAll())
  await many(20, () => fetchAll())
  expect([asked.token, asked.status]).toEqual([1, 0])
  expect(carrier.state()).toMatchObject({ breaker: { state: 'closed', failures: 1 }, lastFailure: { reason: 'server_error' } })
})

test('requests that time out while they wait for a token are not failures of the carrier', async () => {
  const { url, asked } = await openCarrier({ token: () => null })
  const { carrier, fetchAll } = connect(url, { timeoutMs: 200 })
  const waiting = many(6, () => fetchAll())
  await until(() => asked.token === 1)
  await waiting
  expect(carrier.state().breaker).toMatchObject({ state: 'closed', failures: 0 })
})

test.each([500, 502])('DOMAIN 6.1: %i for one parcel is no failure of the carrier if other parcels get answers', async (code) => {
  const { url } = await openCarrier({
    status: (request, response) => (request.url?.includes('OK') === true ? json(response, 200, goodBody) : json(response, code, '')),
  })
  const { carrier, fetchAll } = connect(url, { concurrency: 1 })
  for (let at = 0; at < 20; at++) await fetchAll('schedule', 'PD10001')
  expect(carrier.state().breaker).toMatchObject({ state: 'closed', failures: 1 })
  await fetchAll('schedule', 'OK10001')
  await fetchAll('schedule', 'PD10001')
  expect(carrier.state().breaker).toMatchObject({ state: 'closed', failures: 0 })
})

test('refused connections all count as failures of the carrier, even for a single parcel', async () => {
  const { url, close } = await openCarrier()
  const { carrier, fetchAll } = connect(url, { concurrency: 1 })
  // The first request gets the token, so the later requests ask only for the status.
  await fetchAll('schedule', 'PD10001')
  await close()
  for (let at = 0; at < 6; at++) await fetchAll('schedule', 'PD10001')
  expect(carrier.state().breaker.state).toBe('open')
})
