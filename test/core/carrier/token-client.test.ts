import { afterEach, describe, expect, test } from 'vitest'
import type { CarrierMemory } from '../../../src/core/domain/polling/call-budget.ts'
import { closeOpened, connect, goodBody, json, openCarrier, openHttp, openRaw, password, until } from './carrier-double.ts'

afterEach(closeOpened)

const minute = 60_000
const jwt = (payload: string) => `eyJhbGciOiJub25lIn0.${Buffer.from(payload).toString('base64url')}.c2ln`
const expiringIn = (seconds: number, id = 0) => jwt(JSON.stringify({ exp: Math.floor(Date.now() / 1000) + seconds, id }))
const tokenAnswer = (token: unknown) => JSON.stringify({ token })

describe('refused credentials', () => {
  test.each([400, 401, 403])('T1: after a %i, 3 tries come in 15 minutes, then one after 15, 30 and 60 minutes', async (status) => {
    const { url, asked } = await openCarrier({ token: (_, response) => json(response, status, '{}') })
    const { carrier, fetchAll, move } = connect(url)
    const triesAtMs: number[] = []
    for (let atMs = 0; atMs < 4 * 60 * minute; atMs += 20_000) {
      const before = asked.token
      const answer = await fetchAll(atMs % 40_000 === 0 ? 'app' : 'schedule')
      expect(answer).toMatchObject({ kind: 'unavailable', reason: 'credentials' })
      if (answer.kind === 'unavailable') expect(answer.retryAfterMs).toBeGreaterThanOrEqual(1_000)
      if (asked.token > before) triesAtMs.push(atMs)
      move(20_000)
    }
    const most = Math.max(...triesAtMs.map((from) => triesAtMs.filter((at) => at >= from && at < from + 15 * minute).length))
    const gaps = triesAtMs.slice(1).map((at, index) => Math.round((at - (triesAtMs[index] ?? 0)) / minute))
    expect(most).toBe(3)
    expect(gaps.slice(2)).toEqual([15, 30, 60, 60, 60])
    expect(asked.status).toBe(0)
    expect(carrier.state()).toMatchObject({ credentials: 'refused', lastFailure: { reason: 'credentials' } })
  })

  test('T1: no request is sent during the wait after a refusal', async () => {
    const { url } = await openCarrier({ token: (_, response) => json(response, 401, '{}') })
    const { carrier, fetchAll } = connect(url)
    await fetchAll()
    const answers = await Promise.all(Array.from({ length: 50 }, () => fetchAll()))
    expect(answers.every((answer) => answer.kind === 'unavailable' && answer.reason === 'credentials')).toBe(true)
    expect(carrier.state().budget.callsToday).toBe(1)
  })

  test('T1: a new password is tried at once, and a success ends the refusal', async () => {
    const passwords = ['wrong']
    const { url, asked } = await openCarrier({
      token: (_, response) => json(response, passwords.at(-1) === 'right' ? 200 : 401, tokenAnswer('t')),
    })
    const { carrier, fetchAll, lines } = connect(url, { password: () => passwords.at(-1) ?? '' })
    await fetchAll()
    await fetchAll()
    expect(asked.token).toBe(1)
    passwords.push('right')
    expect((await fetchAll()).kind).toBe('found')
    expect(carrier.state().credentials).toBe('accepted')
    expect(lines.some((line) => line.includes('accepts the credentials'))).toBe(true)
  })

  test('a new password that gets a token ends the refusal, even if the status request gets a 429', async () => {
    const passwords = ['wrong']
    const { url } = await openCarrier({
      token: (_, response) => json(response, passwords.at(-1) === 'right' ? 200 : 401, tokenAnswer('t')),
      status: (_, response) => json(response, 429, '{}', { 'retry-after': '80' }),
    })
    const { carrier, fetchAll } = connect(url, { password: () => passwords.at(-1) ?? '' })
    await fetchAll()
    expect(carrier.state()).toMatchObject({ credentials: 'refused', refusal: { by: 'token_endpoint' } })
    passwords.push('right')
    expect(await fetchAll()).toMatchObject({ reason: 'rate_limited' })
    expect(carrier.state()).toMatchObject({ credentials: 'obtained', refusal: null, lastFailure: { reason: 'rate_limited' } })
  })

  test('a new password does not count as refused while the token endpoint asks for a pause', async () => {
    const passwords = ['wrong']
    const { url } = await openCarrier({
      token: (_, response, count) => json(response, count === 1 ? 401 : 429, '{}', { 'retry-after': '80' }),
    })
    const { carrier, fetchAll } = connect(url, { password: () => passwords.at(-1) ?? '' })
    await fetchAll()
    passwords.push('right')
    expect(await fetchAll()).toMatchObject({ reason: 'rate_limited' })
    expect(carrier.state()).toMatchObject({ credentials: 'unknown', refusal: null, lastFailure: { reason: 'rate_limited' } })
  })

  test('a refusal ends when the token endpoint accepts the same password', async () => {
    const { url } = await openCarrier({
      token: (_, response, count) => json(response, count === 1 ? 401 : 200, tokenAnswer('t')),
      status: (_, response) => json(response, 503, '{}'),
    })
    const { carrier, fetchAll, move } = connect(url)
    await fetchAll()
    move(1000)
    await fetchAll()
    expect(carrier.state()).toMatchObject({ credentials: 'obtained', lastFailure: { reason: 'server_error' } })
  })

  test('a password whose tokens are refused stays refused when it gets another token', async () => {
    let status = 401
    const { url, asked } = await openCarrier({ status: (_, response) => json(response, status, '{}') })
    const { carrier, fetchAll, move } = connect(url)
    await fetchAll()
    expect(carrier.state()).toMatchObject({ credentials: 'refused', refusal: { by: 'status_api', retryMs: expect.any(Number) } })
    status = 503
    move(minute)
    await fetchAll()
    expect([asked.token, carrier.state().credentials]).toEqual([3, 'refused'])
  })

  test('a password that cannot be read is a temporary failure, not a crash', async () => {
    const { url } = await openCarrier()
    let readable = false
    const { fetchAll, move } = connect(url, {
      password: () => {
        if (!readable) throw new Error(`ENOENT ${password}`)
        return password
      },
    })
    expect(await fetchAll()).toMatchObject({ kind: 'unavailable', reason: 'credentials' })
    readable = true
    move(1_000)
    expect((await fetchAll()).kind).toBe('found')
  })
})

describe('a refused token', () => {
  test('T2: a 401 causes one new token and one more try', async () => {
    const { url, asked } = await openCarrier({
      status: (request, response) => json(response, request.headers.authorization === 'Bearer token-2' ? 200 : 401, goodBody),
    })
    const { carrier, fetchAll } = connect(url)
    expect((await fetchAll()).kind).toBe('found')
    expect(asked.bearers).toEqual(['Bearer token-1', 'Bearer token-2'])
    expect([asked.token, carrier.state().credentials]).toEqual([2, 'accepted'])
    expect((await fetchAll()).kind).toBe('found')
    expect(asked.token).toBe(2)
  })

  test('T2: a second 401 means refused credentials, and at most 3 token requests in 15 minutes', async () => {
    const { url, asked } = await openCarrier({ status: (_, response) => json(response, 401, '{}') })
    const { carrier, fetchAll, move } = connect(url)
    expect(await fetchAll()).toMatchObject({ kind: 'unavailable', reason: 'credentials' })
    expect([asked.token, asked.status, carrier.state().credentials]).toEqual([2, 2, 'refused'])
    for (let atMs = 0; atMs < 14 * minute; atMs += 10_000) {
      await fetchAll('schedule')
      move(10_000)
    }
    expect([asked.token, asked.status, carrier.state().credentials]).toEqual([3, 3, 'refused'])
  })

  test('T2: many requests whose common token was refused cause one token request', async () => {
    const { url, asked } = await openCarrier({
      status: (request, response) => json(response, request.headers.authorization === 'Bearer token-1' ? 401 : 200, goodBody),
    })
    const { fetchAll } = connect(url, { concurrency: 50 })
    const answers = await Promise.all(Array.from({ length: 50 }, () => fetchAll()))
    expect(answers.every((answer) => answer.kind === 'found')).toBe(true)
    expect(asked.token).toBe(2)
  })

  test('T2: a new token is fetched even if only one request may be in flight', async () => {
    const { url } = await openCarrier({ status: (_, response, count) => json(response, count === 1 ? 401 : 200, goodBody) })
    expect((await connect(url, { concurrency: 1 }).fetchAll()).kind).toBe('found')
  })

  test('a request that waited for its turn is sent with the newest token', async () => {
    let revoked = false
    const { url, asked } = await openCarrier({
      status: (request, response) => {
        const bad = revoked && request.headers.authorization === 'Bearer token-1'
        setTimeout(() => json(response, bad ? 401 : 200, goodBody), 2)
      },
    })
    const { fetchAll } = connect(url, { concurrency: 1 })
    await fetchAll()
    revoked = true
    await Promise.all(Array.from({ length: 10 }, () => fetchAll('schedule')))
    // A few requests leave before the new token arrives. All later requests use the new token.
    expect(asked.bearers.filter((bearer) => bearer === 'Bearer token-1').length).toBeLessThan(6)
    expect(asked.token).toBe(2)
  })
})

describe('a 403 after a token has worked', () => {
  /** Opens a carrier that answers 403 to every token but those that `works` takes. */
  const openForbidding = (works: (token: string) => boolean, token?: Parameters<typeof openCarrier>[0]) =>
    openCarrier({
      ...token,
      status: (request, response) =>
        json(response, works(request.headers.authorization?.slice('Bearer '.length) ?? '') ? 200 : 403, goodBody),
    })

  test('T2: causes one new token and one more try', async () => {
    let good = 'token-1'
    const { url, asked } = await openForbidding((token) => token === good)
    const { carrier, fetchAll } = connect(url)
    await fetchAll()
    good = 'token-2'
    expect((await fetchAll()).kind).toBe('found')
    expect([asked.token, asked.status, carrier.state().credentials]).toEqual([2, 3, 'accepted'])
  })

  test('T2: is asked for a new token once in 15 minutes, and is no refusal of the credentials', async () => {
    let isOpen = true
    const { url, asked } = await openForbidding(() => isOpen)
    const { carrier, fetchAll, move } = connect(url)
    await fetchAll()
    isOpen = false
    const tokens: number[] = []
    for (let minutes = 0; minutes < 31; minutes++) {
      expect(await fetchAll('schedule')).toMatchObject({ kind: 'unavailable' })
      tokens.push(asked.token)
      move(minute)
    }
    expect([tokens[0], tokens[14], tokens[16], tokens[30]]).toEqual([2, 2, 3, 4])
    expect(carrier.state().credentials).toBe('accepted')
    isOpen = true
    move(5 * minute)
    expect((await fetchAll()).kind).toBe('found')
  })

  test('T2: many questions at once cause one token request, and all are answered', async () => {
    let good = 'token-1'
    const { url, asked } = await openForbidding((token) => token === good)
    const { fetchAll } = connect(url, { concurrency: 50 })
    await fetchAll()
    good = 'token-2'
    const answers = await Promise.all(Array.from({ length: 50 }, (_, at) => fetchAll('schedule', `PD1000${at}`)))
    expect(answers.every((answer) => answer.kind === 'found')).toBe(true)
    expect(asked.token).toBe(2)
  })

  test('T6: keeps its token in use if no other can be had', async () => {
    let isOpen = true
    const { url, asked } = await openForbidding(() => isOpen, {
      token: (_, response, count) => json(response, count === 1 ? 200 : 500, tokenAnswer('token-1')),
    })
    const { fetchAll } = connect(url)
    await fetchAll()
    isOpen = false
    expect(await fetchAll()).toEqual({ kind: 'unavailable', reason: 'rejected' })
    isOpen = true
    expect((await fetchAll()).kind).toBe('found')
    expect(asked.token).toBe(2)
  })

  test('T2: a first token that is answered 403 is replaced after 15 minutes, not before', async () => {
    const { url, asked } = await openForbidding(() => false)
    const { fetchAll, move } = connect(url)
    await fetchAll()
    move(14 * minute)
    await fetchAll()
    expect(asked.token).toBe(1)
    move(minute)
    await fetchAll()
    expect(asked.token).toBe(2)
  })
})

describe('logging in before the first request', () => {
  test('6.4: a login sends one token request, which counts as a call, and shows a refusal', async () => {
    const { url, asked } = await openCarrier({ token: (_, response) => json(response, 403, '{}') })
    const { carrier } = connect(url)
    await carrier.logIn()
    await carrier.logIn()
    expect([asked.token, asked.status]).toEqual([1, 0])
    expect(carrier.state()).toMatchObject({
      credentials: 'refused',
      refusal: { by: 'token_endpoint' },
      lastFailure: { reason: 'credentials' },
      budget: { callsToday: 1 },
    })
  })

  test('6.4: after a restart, the relay still waits out the refusal of the earlier run', async () => {
    const { url, asked } = await openCarrier({ token: (_, response) => json(response, 401, '{}') })
    let memory: CarrierMemory | null = null
    const remember = async (kept: CarrierMemory) => {
      memory = kept
    }
    await connect(url, { remember }).carrier.logIn()
    for (let run = 0; run < 5; run++) {
      const { carrier } = connect(url, { remember, memory })
      await carrier.logIn()
      expect(carrier.state()).toMatchObject({ credentials: 'refused', refusal: { by: 'token_endpoint', atMs: expect.any(Number) } })
    }
    expect(asked.token).toBe(1)
  })

  test('the token from the login is used for the first request', async () => {
    const { url, asked } = await openCarrier()
    const { carrier, fetchAll } = connect(url)
    await carrier.logIn()
    expect(carrier.state()).toMatchObject({ credentials: 'obtained', lastFailure: null })
    expect((await fetchAll()).kind).toBe('found')
    expect([asked.token, carrier.state().credentials]).toEqual([1, 'accepted'])
  })

  test('the refusal of a new password is shown, while the present token is still used', async () => {
    const passwords = ['right']
    const { url } = await openCarrier({ token: (_, response, count) => json(response, count === 1 ? 200 : 401, tokenAnswer('t')) })
    const { carrier, fetchAll } = connect(url, { password: () => passwords.at(-1) ?? '' })
    await fetchAll()
    passwords.push('mistyped')
    await carrier.logIn()
    expect((await fetchAll()).kind).toBe('found')
    expect(carrier.state().credentials).toBe('refused')
  })
})

describe('getting a token', () => {
  test('T3, 6.5: 500 simultaneous requests need one token request', async () => {
    const { url, asked } = await openCarrier()
    const { fetchAll } = connect(url, { concurrency: 8 })
    const answers = await Promise.all(Array.from({ length: 500 }, () => fetchAll('schedule')))
    expect(answers.every((answer) => answer.kind === 'found')).toBe(true)
    expect([asked.token, asked.status]).toEqual([1, 500])
  })

  test.each([
    ['no token', '{}'],
    ['an empty token', tokenAnswer('')],
    ['a number', tokenAnswer(7)],
    ['null', tokenAnswer(null)],
    ['an array', '["token"]'],
    ['a bare string', '"token"'],
    ['CR and LF', tokenAnswer('a\r\nx-injected: 1')],
    ['a trailing line feed', tokenAnswer('abc\n')],
    ['a space', tokenAnswer('a b')],
    ['letters beyond ASCII', tokenAnswer('tökén')],
    ['NUL', tokenAnswer('a\u0000')],
    ['8193 characters', tokenAnswer('a'.repeat(8_193))],
    ['1 MB', tokenAnswer('a'.repeat(1_000_000))],
    ['HTML', '<!doctype html><title>sign in</title>'],
    ['nothing', ''],
  ])('T4: an answer with %s is a bad response', async (_name, body) => {
    const { url, asked } = await openCarrier({ token: (_, response) => json(response, 200, body) })
    const { fetchAll, carrier } = connect(url)
    expect(await fetchAll()).toEqual({ kind: 'unavailable', reason: 'token_bad_response', retryAfterMs: 1_000 })
    expect(asked.status).toBe(0)
    expect(carrier.state()).toMatchObject({ credentials: 'unknown', budget: { inFlight: 0 } })
  })

  test('T4: a token of 8192 characters in a 201 answer is accepted', async () => {
    const token = '~'.repeat(8_192)
    const { url, asked } = await openCarrier({ token: (_, response) => json(response, 201, tokenAnswer(token)) })
    expect((await connect(url).fetchAll()).kind).toBe('found')
    expect(asked.bearers).toEqual([`Bearer ${token}`])
  })

  test('a failing token endpoint is asked less often, down to once a minute, and recovers', async () => {
    let well = false
    const { url, asked } = await openCarrier({ token: (_, response) => json(response, well ? 200 : 500, tokenAnswer('t')) })
    const { fetchAll, move } = connect(url)
    for (let atMs = 0; atMs < 10 * minute; atMs += 1_000) {
      const answer = await fetchAll('schedule')
      expect(answer.kind === 'unavailable' ? answer.reason : answer.kind).toMatch(/^(server_error|resting)$/)
      move(1_000)
    }
    expect(asked.token).toBeGreaterThanOrEqual(8)
    expect(asked.token).toBeLessThanOrEqual(17)
    well = true
    move(minute)
    expect((await fetchAll()).kind).toBe('found')
  })

  test('a token endpoint that gives no token is named once in the log, without its query', async () => {
    const { url } = await openCarrier()
    const { fetchAll, lines, move } = connect(url, { authUrl: `${url}/oauth/tokens?key=canary` })
    for (let at = 0; at < 3; at++) {
      expect(await fetchAll()).toMatchObject({ kind: 'unavailable', reason: 'token_bad_response' })
      move(60_000)
    }
    const told = lines.filter((line) => line.includes('no token') && !line.includes('"debug"')).map((line): unknown => JSON.parse(line))
    expect(told).toEqual([
      {
        level: 'warn',
        reason: 'token_bad_response',
        detail: 'token endpoint: 404',
        url: `${url}/oauth/tokens`,
        message: 'no token from the carrier: check upstream.authUrl',
      },
    ])
  })

  test('a 429 of the token endpoint is obeyed', async () => {
    const { url, asked } = await openCarrier({
      token: (_, response, count) => json(response, count === 1 ? 429 : 200, tokenAnswer('t'), { 'retry-after': '120' }),
    })
    const { fetchAll, move } = connect(url)
    expect(await fetchAll()).toEqual({ kind: 'unavailable', reason: 'rate_limited', retryAfterMs: 120_000 })
    move(118_000)
    expect(await fetchAll()).toMatchObject({ reason: 'rate_limited' })
    expect(asked.token).toBe(1)
    move(2_000)
    expect((await fetchAll()).kind).toBe('found')
  })
})

describe('the lifetime of a token', () => {
  test.each([
    ['no JWT in it', 'opaque'],
    ['no JSON in it', 'a.b.c'],
    ['an exp that is text', jwt('{"exp":"tomorrow"}')],
    ['an exp beyond all numbers', jwt('{"exp":1e400}')],
    ['an exp in the past', jwt('{"exp":1}')],
    ['a negative exp', jwt('{"exp":-1e300}')],
    ['an exp 3 s ahead', expiringIn(3)],
    ['an exp 10 years ahead', expiringIn(315_360_000)],
    ['an exp beyond all dates', jwt('{"exp":1e300}')],
    ['payload null', jwt('null')],
  ])('T5: a token with %s is used until it is refused', async (_name, token) => {
    const { url, asked } = await openCarrier({ token: (_, response) => json(response, 200, tokenAnswer(token)) })
    const { fetchAll, move } = connect(url)
    for (let n = 0; n < 10; n++) {
      expect((await fetchAll()).kind).toBe('found')
      move(60 * minute)
    }
    expect(asked.token).toBe(1)
  })

  test('T5, 6.5: a token is renewed once in the background before its exp', async () => {
    const { url, asked } = await openCarrier({ token: (_, response, count) => json(response, 200, tokenAnswer(expiringIn(600, count))) })
    const { fetchAll, move } = connect(url)
    await fetchAll()
    move(9 * minute - 5_000)
    await fetchAll()
    expect(asked.token).toBe(1)
    move(5_000)
    await Promise.all([fetchAll(), fetchAll(), fetchAll()])
    await until(() => asked.token === 2)
    await until(() => asked.tokenBodies.length === 2)
    expect(new Set(asked.bearers).size).toBe(1)
  })

  test('T5: an endpoint that returns the same expiring token is not asked again and again', async () => {
    const token = expiringIn(60)
    const { url, asked } = await openCarrier({ token: (_, response) => json(response, 200, tokenAnswer(token)) })
    const { fetchAll, move } = connect(url)
    for (let n = 0; n < 60; n++) {
      await fetchAll()
      move(2_000)
    }
    expect(asked.token).toBeLessThanOrEqual(3)
  })

  test('T6: a token request to a host that hangs ends at the deadline', async () => {
    const hanging = await openHttp(() => null)
    const { url, asked } = await openCarrier()
    const { fetchAll, carrier } = connect(url, { authUrl: `${hanging}/auth/token`, timeoutMs: 150 })
    for (const priority of ['app', 'schedule'] as const) {
      expect(await fetchAll(priority)).toMatchObject({ kind: 'unavailable', reason: 'timeout' })
    }
    await until(() => carrier.state().budget.inFlight === 0)
    expect(asked.status).toBe(0)
  })

  test('T6: while the token endpoint hangs, resets or refuses, the present token is still used', async () => {
    for (const trouble of ['hangs', 'resets', 'refuses']) {
      const { url, asked } = await openCarrier({
        token: (request, response, count) => {
          if (count === 1) return json(response, 200, tokenAnswer(expiringIn(120)))
          if (trouble === 'resets') request.socket.destroy()
          return trouble === 'refuses' ? json(response, 401, '{}') : null
        },
      })
      const { carrier, fetchAll, move } = connect(url, { timeoutMs: 2_000 })
      await fetchAll()
      move(100_000)
      expect((await fetchAll()).kind).toBe('found')
      await until(() => asked.token >= 2)
      move(100_000)
      expect((await fetchAll('schedule')).kind).toBe('found')
      // A request that works with the older token does not end the refusal of the credentials.
      if (trouble === 'refuses') await until(() => carrier.state().credentials === 'refused' && asked.token === 3)
      expect((await fetchAll('schedule')).kind).toBe('found')
      expect(carrier.state().credentials).toBe(trouble === 'refuses' ? 'refused' : 'accepted')
    }
  })
})

test('T7: no log line, answer or state has the password or token, even if the carrier echoes it', async () => {
  const secret = 'canary-token-7Xw'
  const everything: string[] = []
  const echo = `${password} ${secret}`
  const answers: readonly { readonly status: number; readonly body: string; readonly headers?: Readonly<Record<string, string>> }[] = [
    { status: 200, body: goodBody },
    { status: 200, body: echo },
    { status: 200, body: JSON.stringify({ statuses: echo }) },
    { status: 200, body: goodBody, headers: { 'content-encoding': secret } },
    { status: 302, body: '', headers: { location: `http://${secret}.invalid/?password=${password}` } },
    { status: 400, body: echo },
    { status: 401, body: echo, headers: { 'www-authenticate': `Bearer ${secret}` } },
    { status: 404, body: echo },
    { status: 429, body: echo, headers: { 'retry-after': secret } },
    { status: 500, body: echo },
    { status: 503, body: echo },
  ]
  for (const { status, body, headers } of answers) {
    const well = await openCarrier({
      token: (_, response) => json(response, 200, tokenAnswer(secret)),
      status: (_, response) => json(response, status, body, headers),
    })
    const ill = await openCarrier({ token: (_, response) => json(response, status, body, headers) })
    for (const { url } of [well, ill]) {
      const { carrier, fetchAll, lines } = connect(url)
      const results = [await fetchAll(), await fetchAll('schedule')].map((answer) => (answer.kind === 'found' ? 'found' : answer))
      expect(lines.length).toBeGreaterThan(0)
      everything.push(...lines, JSON.stringify(results), JSON.stringify(carrier.state()))
    }
  }
  const noHttp = await openRaw((socket) => socket.on('data', () => socket.write(`${echo}\r\n`)))
  const thrown = connect(noHttp)
  everything.push(JSON.stringify(await thrown.fetchAll()), ...thrown.lines)
  const all = everything.join('\n')
  expect(all).toContain('bad_response')
  expect(all).not.toMatch(/canary/)
})
