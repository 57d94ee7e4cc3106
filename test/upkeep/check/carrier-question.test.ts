import type { ServerResponse } from 'node:http'
import { afterEach, expect, test } from 'vitest'
import { carrierRemedy, lastFailureText } from '../../../src/core/domain/polling/carrier-answer.ts'
import { carrierProbe } from '../../../src/upkeep/check/outbound-probes.ts'
import { closeOpened, connect, goodBody, json, openCarrier, openHttp, openTls } from '../../core/carrier/carrier-double.ts'
import { DAY_MS } from '../../support/runner/constants.ts'

afterEach(closeOpened)

const KNOWN = 'AB123456789SE'

interface Asked {
  /** A parcel that the carrier has answered before; null: there is none. */
  readonly known?: string | null
  readonly carrier: ReturnType<typeof connect>['carrier']
}

async function questionOf({ carrier, known = KNOWN }: Asked) {
  const lines = [await carrierProbe(carrier, { language: 'en', known: async () => known, loginSetting: 'upstream.baseUrl' }).look()].flat()
  return lines.find((line) => 'name' in line && line.name === 'question')
}

/** Opens a carrier that gives tokens and answers each question in one way, and a client of it. */
async function open(answer: (response: ServerResponse) => void) {
  const { url, asked } = await openCarrier({ status: (_request, response) => answer(response) })
  return { asked, ...connect(url) }
}

const REFUSED = carrierRemedy({ reason: 'rejected' })
const DOWN = carrierRemedy({ reason: 'server_error' })

test.each([
  ['403', (to: ServerResponse): void => json(to, 403, '{}'), { reason: 'rejected', status: 403 }, '(403)', REFUSED],
  ['401 to a new token', (to: ServerResponse): void => json(to, 401, '{}'), { reason: 'rejected', status: 401 }, '(401)', REFUSED],
  ['a page of HTML', (to: ServerResponse): void => json(to, 200, '<html>'), { reason: 'bad_response' }, 'is no JSON', REFUSED],
  ['JSON of another shape', (to: ServerResponse): void => json(to, 200, '{"ok":true}'), { reason: 'bad_response' }, 'statuses', REFUSED],
  ['a redirect', (to: ServerResponse): void => json(to, 302, '', { location: '/' }), { reason: 'redirect', status: 302 }, '(302)', REFUSED],
  ['503', (to: ServerResponse): void => json(to, 503, '{}'), { reason: 'server_error', status: 503 }, '(503)', DOWN],
] as const)(
  'P1: check says why the carrier fails that answers a question with %s, in one call',
  async (_what, answer, cause, detail, remedy) => {
    const { carrier, asked } = await open(answer)
    const question = await questionOf({ carrier })
    expect(question).toMatchObject({ state: 'failed' })
    for (const said of [lastFailureText(cause), detail, remedy]) expect(question).toMatchObject({ message: expect.stringContaining(said) })
    expect([asked.token, asked.status]).toEqual([1, 1])
    expect(carrier.state().lastFailure).toMatchObject({ ...cause, atMs: expect.any(Number) })
  },
)

test('P1: check says in the shared words why TLS fails where questions are asked', async () => {
  const tokens = await openHttp((_request, response) => json(response, 200, '{"token":"abc"}'))
  const { carrier } = connect(await openTls((_request, response) => json(response, 200, goodBody)), { authUrl: tokens })
  const tls = 'certificate_self_signed'
  expect(await questionOf({ carrier })).toEqual({
    name: 'question',
    subject: null,
    state: 'failed',
    message: expect.stringContaining(`${lastFailureText({ reason: 'network', tls })}. ${carrierRemedy({ reason: 'network', tls })}`),
  })
})

test.each([
  ['a history', (to: ServerResponse): void => json(to, 200, goodBody)],
  ['404', (to: ServerResponse): void => json(to, 404, '{}')],
  ['410', (to: ServerResponse): void => json(to, 410, '{}')],
] as const)('an answer is %s, whether a parcel is known or nobody has the number', async (_what, answer) => {
  const { carrier, asked } = await open(answer)
  expect(await questionOf({ carrier })).toMatchObject({ state: 'ok', message: expect.stringContaining('answered before') })
  expect(await questionOf({ carrier, known: null })).toMatchObject({ state: 'ok', message: expect.stringContaining('nobody has') })
  const [known, nobodys] = asked.urls
  expect(known).toBe(`/v1/status/${KNOWN}/all?language=en`)
  expect(nobodys).toMatch(/^\/v1\/status\/ZZ[0-9]{9}ZZ\/all/)
})

test('a carrier that may only dislike a number that nobody has is a warning, no failure', async () => {
  for (const status of [400, 422, 500]) {
    const { carrier } = await open((response) => json(response, status, '{}'))
    expect(await questionOf({ carrier, known: null })).toMatchObject({
      state: 'warning',
      message: expect.stringContaining(`(${status})`),
    })
    expect(carrier.state()).toMatchObject({ lastFailure: null, breaker: { failures: 0 } })
  }
})

test('a carrier that limits calls, or a budget that is used up, leaves the question untried', async () => {
  const { carrier } = await open((response) => json(response, 429, '{}'))
  expect(await questionOf({ carrier })).toMatchObject({ state: 'skipped', message: expect.stringContaining('429') })
  const used = await openCarrier()
  const { carrier: poor } = connect(used.url, { callsPerDay: 1 })
  expect(await questionOf({ carrier: poor })).toMatchObject({ state: 'skipped' })
  expect(used.asked.status).toBe(0)
})

test('the question is asked while calls pause, says since when, and its answer ends the pause', async () => {
  let isWell = false
  const { carrier, fetchAll, asked } = await open((response) => json(response, isWell ? 200 : 500, goodBody))
  for (const nth of [1, 2, 3, 4, 5, 6]) await fetchAll('schedule', `AB00000000${nth}SE`)
  await expect.poll(() => carrier.state().breaker.state).toBe('open')
  expect(await questionOf({ carrier })).toMatchObject({
    state: 'failed',
    message: expect.stringMatching(/no question since [\d-]+T/),
  })
  const before = asked.status
  isWell = true
  expect(await questionOf({ carrier })).toMatchObject({ state: 'ok' })
  expect(asked.status).toBe(before + 1)
  expect(carrier.state().breaker.state).toBe('closed')
})

test('without a token nothing is asked', async () => {
  const double = await openCarrier({ token: (_request, response) => json(response, 401, '{}') })
  const { carrier } = connect(double.url)
  expect(await questionOf({ carrier })).toMatchObject({ state: 'skipped', message: expect.stringContaining('no token') })
  expect(double.asked.status).toBe(0)
})

test('6.8: a 404 to a number that nobody has does not end a row of refused parcels', async () => {
  const { carrier, fetchAll } = await openRefusing()
  for (let at = 0; at < 25; at++) {
    await fetchAll('schedule', `AB0000000${10 + at}SE`)
    await askNobodys(carrier)
  }
  await expect.poll(() => carrier.state().breaker.state).toBe('open')
  const [{ lastAnswerAtMs }, question] = [carrier.state(), await questionOf({ carrier, known: null })]
  expect(question).toMatchObject({ state: 'failed', message: expect.stringContaining('but refuses those about parcels') })
  expect(question).toMatchObject({ message: expect.stringContaining('(403)') })
  await askNobodys(carrier)
  expect(carrier.state()).toMatchObject({ breaker: { state: 'open' }, lastAnswerAtMs })
})

test('6.8: a history for an unknown number, or a 404 for a parcel, ends a row of refused parcels', async () => {
  for (const [identifier, ofNobody] of [
    ['OK000000001SE', true],
    ['ZZ000000001ZZ', false],
  ] as const) {
    const { carrier, fetchAll } = await openRefusing()
    for (let at = 0; at < 25; at++) await fetchAll('schedule', `AB0000000${10 + at}SE`)
    await expect.poll(() => carrier.state().breaker.state).toBe('open')
    await carrier.tryQuestion({ identifier, language: 'en', mayCount: !ofNobody })
    expect(carrier.state().breaker.state).toBe('closed')
  }
})

test('6.8: a carrier that answers 404 to every parcel ends an outage within a day', async () => {
  for (const isLeft of [true, false]) {
    let isMended = false
    const { url } = await openCarrier({ status: (_request, response) => json(response, isMended ? 404 : 403, '{}') })
    const { carrier, fetchAll, move } = connect(url)
    for (let at = 0; at < 25; at++) await fetchAll('schedule', `AB0000000${10 + at}SE`)
    await expect.poll(() => carrier.state().breaker.state).toBe('open')
    isMended = true
    move(5 * 60_000)
    await askNobodys(carrier)
    expect(carrier.state().breaker.state).toBe('open')
    if (!isLeft) move(DAY_MS)
    // What asked about parcels that are gone meanwhile are apps, about numbers that nobody has.
    await (isLeft ? fetchAll('schedule', 'AB000000010SE') : askNobodys(carrier))
    expect(carrier.state().breaker.state).toBe('closed')
  }
})

test('6.8: checks of one parcel at fault make no outage of a carrier that answers others', async () => {
  for (const status of [500, 403]) {
    const { url, asked } = await openCarrier({
      status: ({ url: path = '' }, response) => json(response, path.includes(KNOWN) ? status : 200, goodBody),
    })
    const { carrier, move } = connect(url, { answeredBefore: async () => [KNOWN, 'OK000000001SE'] })
    for (let times = 0; times < 30; times++) {
      expect(await questionOf({ carrier })).toMatchObject({ state: 'failed' })
      move(60_000)
      await carrier.lookAgain()
      expect(carrier.state().breaker.state).toBe('closed')
    }
    expect(asked.urls.some((path) => path.includes('OK'))).toBe(true)
  }
})

test('6.8: a check that fails on a quiet relay makes the relay ask about others itself', async () => {
  const { url } = await openCarrier({ status: (_request, response) => json(response, 500, '{}') })
  const { carrier, move } = connect(url, { answeredBefore: async () => [KNOWN, 'OK000000001SE', 'OK000000002SE'] })
  await questionOf({ carrier })
  for (let times = 0; times < 2; times++) {
    move(5000)
    await carrier.lookAgain()
  }
  expect(carrier.state().breaker.state).toBe('open')
})

/** Opens a carrier that answers 404 to numbers that begin with ZZ and a history to those with OK, and refuses all others. */
async function openRefusing() {
  const { url } = await openCarrier({
    status: ({ url = '' }, response) => json(response, url.includes('/ZZ') ? 404 : url.includes('/OK') ? 200 : 403, goodBody),
  })
  return connect(url)
}

const askNobodys = (carrier: Asked['carrier']) =>
  carrier.fetchAll({ identifier: 'ZZ000000001ZZ', language: 'en', priority: 'app', spender: 'app:shop', ofNobody: true })
