import { SignJWT } from 'jose'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { createInternalListener, type InternalOptions } from '../../src/assembly/internal-listener.ts'
import { AppError, NO_ROOM_TEXT } from '../../src/core/domain/errors.ts'
import { type App, createAuthenticate, type VerifiedToken } from '../../src/core/flow/admin/tokens/authenticate.ts'
import { parseQuestion, type Question, type Served } from '../../src/core/flow/history/answer.ts'
import { createCountFailure, createPerMinute, createVisitorOf } from '../../src/core/http/server/authorize.ts'
import { createAddressOf } from '../../src/core/http/server/request-headers.ts'
import { createTokens } from '../../src/core/http/server/tokens.ts'
import { raw, start, systemClock } from '../core/http/harness.ts'
import { keyringOf } from '../support/network/token-keyring.ts'
import { nothingServed } from '../support/relay/nothing-served.ts'
import { INTERNAL_ROUTES } from '../support/relay/routes.ts'
import { createLogBook } from '../support/runner/log-book.ts'

const APPS: readonly App[] = [
  { username: 'shop', passwordHashes: ['hash of secret'], scopes: ['status'] },
  { username: 'guest', passwordHashes: ['hash of guest'], scopes: [] },
  { username: 'keeper', passwordHashes: ['hash of keys'], scopes: ['status', 'admin'] },
]
const signingKey = Buffer.alloc(32, 9)
const answer: Served = {
  body: Buffer.from('{"statuses":[]}'),
  etag: '"a-tag"',
  ageSeconds: 12,
  contentLanguage: 'en',
  cacheStatus: 'parcel-relay; hit',
}

interface World {
  readonly serve?: (question: Question) => Promise<Served>
  /** Answers at once from the cache. By default the cache is empty. */
  readonly kept?: (question: Question) => Served | null
  readonly failuresPerMinute?: number
  readonly metrics?: InternalOptions['metrics']
  readonly readiness?: () => Promise<{ ready: boolean; reasons: readonly string[]; notes?: Readonly<Record<string, unknown>> }>
}

async function startInternal(world: World = {}) {
  const questions: Question[] = []
  const looked: string[] = []
  const book = createLogBook()
  const authenticate = createAuthenticate(
    {
      tokens: createTokens({ keyring: keyringOf(signingKey), clock: systemClock, audience: 'parcel-relay' }),
      verifyPassword: async (hash, password) => {
        looked.push(password)
        return hash === `hash of ${password}`
      },
      digestPassword: (hash, password) => `${hash} ${password}`,
      rightPasswords: new Map<string, string>(),
      verified: new Map<string, VerifiedToken>(),
      clock: systemClock,
    },
    { apps: APPS, tokenLifetimeMs: 3_600_000, sessionMaxMs: null, dummyHash: 'hash of nobody' },
  )
  const ask = async (question: Question) => {
    parseQuestion(question)
    questions.push(question)
    return world.serve?.(question) ?? answer
  }
  const addressOf = createAddressOf(['127.0.0.1'])
  const options: InternalOptions = {
    ...nothingServed,
    log: book.log,
    authenticate,
    serve: { ask, fromCache: world.kept ?? (() => null) },
    followFeed: { follow: () => () => Promise.reject(new Error('not asked')), isOver: () => false },
    feedFollowersMax: 1000,
    relayId: '',
    addressOf,
    visitorOf: createVisitorOf(world.failuresPerMinute ?? 100_000, addressOf),
    countFailure: createCountFailure(createPerMinute(world.failuresPerMinute ?? 100_000), addressOf),
    readiness: world.readiness ?? (async () => ({ ready: true, reasons: [] })),
    metrics: world.metrics ?? (async () => ({ contentType: 'text/plain; version=0.0.4', body: 'parcels 1\n' })),
  }
  const { port } = await start(await createInternalListener(options))
  const url = `http://127.0.0.1:${port}`
  const login = (body: unknown, type = 'application/json', from = '127.0.0.1') =>
    fetch(`${url}/auth/token`, {
      method: 'POST',
      headers: { 'content-type': type, 'x-forwarded-for': from },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  const tokenOf = async (username: string, password: string) => {
    const issued: unknown = await (await login({ username, password })).json()
    if (typeof issued === 'object' && issued !== null && 'token' in issued && typeof issued.token === 'string') return issued.token
    throw new Error('no token')
  }
  const token = await tokenOf('shop', 'secret')
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    fetch(`${url}${path}`, { method, headers: { authorization: `Bearer ${token}`, ...headers } })
  /** Sends a request for the exact target, which `fetch` would normalise. */
  const status = async (target: string, method = 'GET') =>
    (await raw(port, `${method} ${target} HTTP/1.1\r\nHost: relay\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`)).status
  return { port, url, options, login, looked, tokenOf, token, get, status, questions, lines: book.lines }
}

const typeOf = async (response: Response) => {
  const problem: unknown = await response.json()
  return typeof problem === 'object' && problem !== null && 'type' in problem ? problem.type : null
}

test('the token endpoint answers with only a token, which no cache may store', async () => {
  const { login } = await startInternal()
  const response = await login({ username: 'shop', password: 'secret' })
  expect([response.status, response.headers.get('content-type'), response.headers.get('cache-control')]).toEqual([
    200,
    'application/json',
    'no-store',
  ])
  expect(Object.keys(JSON.parse(await response.text()))).toEqual(['token'])
})

test('wrong credentials get a 401, a malformed body a 400, and a body that is too large a 413', async () => {
  const { login } = await startInternal()
  const wrong = await login({ username: 'shop', password: 'guess' })
  expect([wrong.status, wrong.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
  for (const body of ['{"username":"shop"', '', '[]', '1', '"x"', 'null', '{"username":"shop"}', '{"username":1,"password":"secret"}']) {
    const response = await login(body)
    expect([body, response.status, await typeOf(response)]).toEqual([body, 400, 'urn:parcel-relay:error:bad_request'])
  }
  expect((await login({ username: 'shop', password: 'secret' }, 'text/plain')).status).toBe(400)
  expect((await login({ username: 'shop', password: 'x'.repeat(20_000) })).status).toBe(413)
})

test('an answer is sent unchanged, with its ETag, age, language and cache status', async () => {
  const { get, questions } = await startInternal()
  const response = await get('/v1/status/%20ab123456789se%20/all?language=en&other=1')
  expect([response.status, await response.text()]).toEqual([200, '{"statuses":[]}'])
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'application/json',
    etag: '"a-tag"',
    age: '12',
    'content-language': 'en',
    'cache-status': 'parcel-relay; hit',
    'cache-control': 'private, no-cache',
  })
  expect(['server', 'x-powered-by'].filter((name) => response.headers.has(name))).toEqual([])
  await get('/v1/status/AB123456789SE/latest')
  expect(questions).toEqual([
    { app: 'shop', identifier: ' ab123456789se ', language: 'en', kind: 'all' },
    { app: 'shop', identifier: 'AB123456789SE', language: undefined, kind: 'latest' },
  ])
})

test('an answer whose age is unknown has no Age header', async () => {
  const { get } = await startInternal({ serve: async () => ({ ...answer, ageSeconds: null }) })
  expect((await get('/v1/status/AB123456789SE/all')).headers.has('age')).toBe(false)
})

test('a client that already has the answer gets a 304 without a body', async () => {
  const { get } = await startInternal()
  for (const tags of ['"a-tag"', 'W/"a-tag"', '"other", "a-tag"', '*']) {
    const response = await get('/v1/status/AB123456789SE/all', { 'if-none-match': tags, 'cache-control': 'max-age=0' })
    expect([tags, response.status, await response.text(), response.headers.get('etag'), response.headers.get('age')]).toEqual([
      tags,
      304,
      '',
      '"a-tag"',
      '12',
    ])
  }
  expect((await get('/v1/status/AB123456789SE/all', { 'if-none-match': '"other"', 'cache-control': 'max-age=0' })).status).toBe(200)
})

test('the fast path gives the same answers as the status routes, whether cached or not', async () => {
  const questions: Question[] = []
  const kept = (question: Question) => {
    questions.push(question)
    return answer
  }
  const [notKept, fromCache] = [await startInternal(), await startInternal({ kept })]
  const wordOf = async (world: typeof fromCache, query: string) => {
    // The fast path accepts only a token that was checked before.
    await world.get('/v1/status/AB123456789SE/latest?not=plain')
    const head = `GET /v1/status/ab123456789se/all${query} HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n`
    const { text } = await raw(world.port, `${head}Authorization: Bearer ${world.token}\r\n\r\n`)
    const [lines = '', body] = text.split('\r\n\r\n')
    return [
      lines
        .replace(/Date: .*/, 'Date')
        .split('\r\n')
        .toSorted(),
      body,
    ]
  }
  for (const [plain, other] of [
    ['', '?not=plain'],
    ['?language=en', '?language=en&not=plain'],
  ] as const) {
    const said = await wordOf(notKept, other)
    expect([await wordOf(notKept, plain), await wordOf(fromCache, plain)]).toEqual([said, said])
  }
  const asked = [undefined, 'en'].map((language) => ({ app: 'shop', identifier: 'ab123456789se', language, kind: 'all' }))
  expect(questions).toEqual(asked)
  expect(notKept.questions.filter(({ kind }) => kind === 'all')).toEqual(asked.flatMap((one) => [one, one]))
})

test('an app that disconnects before its answer does no harm', async () => {
  const { promise: asked, resolve: begin } = Promise.withResolvers<void>()
  const { promise: late, resolve: finish } = Promise.withResolvers<Served>()
  const world = await startInternal({
    serve: ({ kind }) => {
      if (kind === 'latest') return Promise.resolve(answer)
      begin()
      return late
    },
  })
  await world.get('/v1/status/AB123456789SE/latest')
  const leaving = new AbortController()
  const left = fetch(`${world.url}/v1/status/AB123456789SE/all`, {
    headers: { authorization: `Bearer ${world.token}` },
    signal: leaving.signal,
  }).catch(() => 'left')
  await asked
  leaving.abort()
  expect(await left).toBe('left')
  await world.get('/v1/status/AB123456789SE/latest')
  finish(answer)
  expect((await world.get('/v1/status/AB123456789SE/latest')).status).toBe(200)
  expect(world.lines.filter(({ level }) => level !== 'debug')).toEqual([])
})

test('only an app with a single valid token is answered from the cache', async () => {
  const { port, tokenOf, token, get } = await startInternal({ kept: () => answer })
  const guest = await tokenOf('guest', 'guest')
  await get('/v1/status/AB123456789SE/all')
  const ask = async (...headers: readonly string[]) => {
    const lines = ['GET /v1/status/AB123456789SE/all HTTP/1.1', 'Host: relay', 'Connection: close', ...headers]
    return (await raw(port, `${lines.join('\r\n')}\r\n\r\n`)).status
  }
  const good = `Authorization: Bearer ${token}`
  expect(await ask(good)).toBe(200)
  expect(await ask()).toBe(401)
  expect(await ask(good, good)).toBe(401)
  expect(await ask(`Authorization: Basic ${token}`)).toBe(401)
  expect(await ask(`Authorization: Bearer ${token}x`)).toBe(401)
  expect(await ask(`Authorization: Bearer ${guest}`)).toBe(403)
  expect(await ask(good, 'If-None-Match: "a-tag"')).toBe(304)
  expect(await ask(good, 'Host: another')).toBe(400)
})

test('HEAD answers like GET, but without the body', async () => {
  const { get } = await startInternal()
  const response = await get('/v1/status/AB123456789SE/latest', {}, 'HEAD')
  expect([response.status, response.headers.get('etag'), response.headers.get('content-length')]).toEqual([200, '"a-tag"', '15'])
})

test('R1: a token with another algorithm, issuer, audience, type or key is refused', async () => {
  const { url } = await startInternal()
  const forge = (header: { alg: string; typ: string }, claims: { iss: string; aud: string }, key = signingKey) =>
    new SignJWT({ fingerprint: 'x', sub: 'shop', ...claims })
      .setProtectedHeader({ ...header, kid: keyringOf(signingKey).current().name })
      .setExpirationTime('1h')
      .sign(key)
  const usual = { iss: 'parcel-relay', aud: 'parcel-relay' }
  const forged = [
    await forge({ alg: 'HS512', typ: 'JWT' }, usual, Buffer.alloc(64, 9)),
    await forge({ alg: 'HS256', typ: 'JWT' }, { ...usual, iss: 'other' }),
    await forge({ alg: 'HS256', typ: 'JWT' }, { ...usual, aud: 'other' }),
    await forge({ alg: 'HS256', typ: 'at+jwt' }, usual),
    await forge({ alg: 'HS256', typ: 'JWT' }, usual, Buffer.alloc(32, 8)),
    await forge({ alg: 'HS256', typ: 'JWT' }, usual),
  ]
  for (const token of forged) {
    expect((await fetch(`${url}/v1/status/AB123456789SE/all`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(401)
  }
})

test('R4: a token without the scope is a 403', async () => {
  const { tokenOf, url } = await startInternal()
  const token = await tokenOf('guest', 'guest')
  expect((await fetch(`${url}/v1/status/AB123456789SE/all`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(403)
})

test('R2: bad tokens over an address’s limit get 429, while a valid one is accepted', async () => {
  const { url, login, get } = await startInternal({ failuresPerMinute: 2 })
  expect((await login({ username: 'keeper', password: 'keys' })).status).toBe(200)
  const guess = () => fetch(`${url}/v1/status/AB123456789SE/all`, { headers: { authorization: 'Bearer guess' } })
  expect([(await guess()).status, (await login({ username: 'shop', password: 'guess' })).status]).toEqual([401, 401])
  const refused = await guess()
  expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true])
  expect((await login({ username: 'shop', password: 'guess' })).status).toBe(429)
  expect((await get('/v1/status/AB123456789SE/all')).status).toBe(200)
  expect((await login({ username: 'keeper', password: 'keys' })).status).toBe(200)
})

test('I15, I17, W3: over an address’s limit only known passwords are accepted', async () => {
  const { login, looked } = await startInternal({ failuresPerMinute: 5 })
  for (let nth = 0; nth < 3; nth++) expect((await login({ username: 'shop', password: 'secret' })).status).toBe(200)
  // Send them at once, because undecided logins must count towards the limit too.
  const guesses = await Promise.all(Array.from({ length: 20 }, (_, nth) => login({ username: 'shop', password: `guess ${nth}` })))
  expect(guesses.filter(({ status }) => status === 401)).toHaveLength(5)
  expect(guesses.filter(({ status, headers }) => status === 429 && Number(headers.get('retry-after')) > 0)).toHaveLength(15)
  expect(looked.filter((password) => password.startsWith('guess'))).toHaveLength(5)
  expect((await login({ username: 'keeper', password: 'keys' })).status).toBe(429)
  expect((await login({ username: 'shop', password: 'secret' })).status).toBe(200)
  const elsewhere = await login({ username: 'shop', password: 'secret' }, 'application/json', '203.0.113.9')
  expect(elsewhere.status).toBe(200)
})

test('I17: above the limit of an address or a /64, logins with new user names are refused', async () => {
  const { login, looked } = await startInternal({ failuresPerMinute: 5 })
  const before = looked.length
  const from = (nth: number) => (nth % 2 === 0 ? '2001:db8:0:7::' : `2001:0DB8::7:${nth}:2:3:4`)
  const tried = await Promise.all(
    Array.from({ length: 20 }, (_, nth) => login({ username: `nobody ${nth}`, password: 'guess' }, 'application/json', from(nth))),
  )
  expect(tried.map(({ status }) => status).sort((a, b) => a - b)).toEqual([...Array(5).fill(401), ...Array(15).fill(429)])
  expect(looked.length - before).toBe(5)
  expect((await login({ username: 'keeper', password: 'keys' }, 'application/json', '2001:db8:0:8::1')).status).toBe(200)
})

test('H11: an unsupported method gets a 405 with Allow', async () => {
  const { url, status } = await startInternal()
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE'])
    expect([method, await status('/v1/status/AB123456789SE/all', method)]).toEqual([method, 405])
  expect((await fetch(`${url}/v1/status/AB123456789SE/all`, { method: 'DELETE' })).headers.get('allow')).toBe('GET, HEAD')
  expect((await fetch(`${url}/auth/token`)).headers.get('allow')).toBe('POST')
})

test('R5: a failure is answered with its status, and with its Retry-After if it has one', async () => {
  const failures = [
    ['not_found', 404, null],
    ['no_entry', 404, null],
    ['upstream_unavailable', 503, '31'],
    ['storage_unavailable', 503, '31'],
    ['too_many_requests', 429, '31'],
  ] as const
  for (const [code, expected, retryAfter] of failures) {
    const { get } = await startInternal({
      serve: () => Promise.reject(new AppError(code, 'a sentence', retryAfter === null ? {} : { retryAfterMs: 30_001 })),
    })
    const response = await get('/v1/status/AB123456789SE/all')
    expect([response.status, response.headers.get('retry-after'), response.headers.get('cache-control')]).toEqual([
      expected,
      retryAfter,
      'no-store',
    ])
    expect(response.headers.has('etag')).toBe(false)
  }
})

test('S5: what a full disk refuses is answered with a 503 that names the disk and the next step', async () => {
  for (const code of ['SQLITE_FULL', 'ENOSPC']) {
    const { get } = await startInternal({ serve: () => Promise.reject(Object.assign(new Error('no room'), { code })) })
    const response = await get('/v1/status/AB123456789SE/all')
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5'])
    expect(await response.text()).toContain(JSON.stringify(NO_ROOM_TEXT).slice(1, -1))
  }
})

test('R9: an error in a handler gets a 500 with only an id, and is logged once', async () => {
  const circular: Record<string, unknown> = { secret: 'leaked' }
  circular.self = circular
  for (const thrown of ['leaked', circular, 10n, null, undefined, new Error('leaked\nleaked')]) {
    const { get, lines } = await startInternal({
      serve: () => {
        throw thrown
      },
    })
    const response = await get('/v1/status/AB123456789SE/all')
    const text = await response.text()
    expect([response.status, response.headers.get('content-type')]).toEqual([500, 'application/problem+json'])
    expect(text).not.toContain('leaked')
    expect(lines.map(({ level }) => level)).toEqual(['error'])
  }
})

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'

test.each([
  ['has a trace id if the traceparent is valid', `00-${TRACE_ID}-00f067aa0ba902b7-01`, TRACE_ID],
  ['has a trace id if the traceparent is of a later version', `cc-${TRACE_ID}-00f067aa0ba902b7-01-what-comes`, TRACE_ID],
  ['has no trace id if there is no traceparent', undefined, undefined],
  ['has no trace id if a traceparent of version 00 is too long', `00-${TRACE_ID}-00f067aa0ba902b7-01-more`, undefined],
  ['has no trace id if the id is all zeros', `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`, undefined],
  ['has no trace id if the version is ff', `ff-${TRACE_ID}-00f067aa0ba902b7-01`, undefined],
  ['has no trace id if the id is in capitals', `00-${TRACE_ID.toUpperCase()}-00f067aa0ba902b7-01`, undefined],
  ['has no trace id if the traceparent is another text', 'x[31m', undefined],
])('the log line of a failed request %s', async (_name, traceparent, traceId) => {
  const { get, lines } = await startInternal({
    serve: () => {
      throw new Error('a bug')
    },
  })
  const response = await get('/v1/status/AB123456789SE/all', traceparent === undefined ? {} : { traceparent })
  const { instance } = z.object({ instance: z.string() }).parse(await response.json())
  expect(lines).toMatchObject([{ level: 'error', fields: { instance } }])
  expect(lines[0]?.fields).toEqual(
    traceId === undefined ? expect.not.objectContaining({ traceId: expect.anything() }) : expect.objectContaining({ traceId }),
  )
})

test('the log line of a request that the carrier could not answer has its trace id', async () => {
  const { get, lines } = await startInternal({
    serve: () => {
      throw new AppError('upstream_unavailable', 'The carrier cannot be asked now.')
    },
  })
  const response = await get('/v1/status/AB123456789SE/all', { traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01` })
  expect(response.status).toBe(503)
  expect(lines).toMatchObject([{ level: 'debug', fields: { traceId: TRACE_ID, code: 'upstream_unavailable' } }])
})

test('X6: healthz is always 200, readyz gives the reason if not ready, and metrics are text', async () => {
  const { url } = await startInternal({ readiness: async () => ({ ready: false, reasons: ['disk_full'], notes: { carrier: 'refused' } }) })
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  const ready = await fetch(`${url}/readyz`)
  expect([ready.status, await ready.json()]).toEqual([503, { status: 'not_ready', reasons: ['disk_full'], carrier: 'refused' }])
  const metrics = await fetch(`${url}/metrics`)
  expect([metrics.headers.get('content-type'), await metrics.text()]).toEqual(['text/plain; version=0.0.4', 'parcels 1\n'])
  const other = await startInternal()
  expect((await fetch(`${other.url}/readyz`, { method: 'HEAD' })).status).toBe(200)
})

test('F9: simultaneous requests for metrics share one rendering', async () => {
  let rendered = 0
  const gate = Promise.withResolvers<void>()
  const { url } = await startInternal({
    metrics: async () => {
      rendered++
      await gate.promise
      return { contentType: 'text/plain', body: `rendered ${rendered}` }
    },
  })
  const asked = Array.from({ length: 20 }, () => fetch(`${url}/metrics`))
  // After another round trip the server has read all of the requests.
  await fetch(`${url}/healthz`)
  await expect.poll(() => rendered).toBe(1)
  gate.resolve()
  const texts = await Promise.all(asked.map(async (answer) => (await answer).text()))
  expect(texts.length - new Set(texts).size).toBeGreaterThan(10)
  expect(await (await fetch(`${url}/metrics`)).text()).toBe(`rendered ${rendered}`)
})

test('a client that sends its body only after a 100 gets the 100', async () => {
  const { port } = await startInternal()
  const body = '{"username":"shop","password":"secret"}'
  const headers = `Host: relay\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue`
  const reply = await raw(port, `POST /auth/token HTTP/1.1\r\n${headers}\r\n\r\n`, {
    reply: body,
    until: (text) => text.includes('"token"'),
  })
  expect(reply.text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/)
})

test('an unknown parameter is a 400 under /relay, and ignored on the carrier’s own routes', async () => {
  const { url, tokenOf } = await startInternal()
  const headers = { authorization: `Bearer ${await tokenOf('keeper', 'keys')}` }
  const routes = INTERNAL_ROUTES.map(({ method, path }) => ({ method: method.toUpperCase(), path: path.replace(/:\w+/g, 'AB123456789SE') }))
  const own = routes.filter(({ path }) => path.startsWith('/relay'))
  expect(own.length).toBeGreaterThan(15)
  for (const { method, path } of own) {
    const answer = await fetch(`${url}${path}?bogus=1`, { method, headers })
    expect([method, path, answer.status, await answer.json()]).toEqual([
      method,
      path,
      400,
      expect.objectContaining({ type: 'urn:parcel-relay:error:bad_request', errors: [{ parameter: 'bogus', detail: expect.any(String) }] }),
    ])
  }
  expect((await fetch(`${url}/v1/status/AB123456789SE/all?bogus=1`, { headers })).status).toBe(200)
})

test('all problems of a query are reported together, with the nearest known name or value', async () => {
  const { url, tokenOf } = await startInternal()
  const headers = { authorization: `Bearer ${await tokenOf('keeper', 'keys')}` }
  const answer = await fetch(`${url}/relay/deliveries?endpont=1&state=deliverd&limit=501&limit=2&cursor=x&__proto__=1`, { headers })
  expect([answer.status, await answer.json()]).toEqual([
    400,
    {
      type: 'urn:parcel-relay:error:bad_request',
      title: 'The request is malformed',
      status: 400,
      instance: expect.stringMatching(/^urn:uuid:/),
      detail:
        'limit must be given only once. cursor must be the next of a page. state must be one of queued, retrying, held, delivered, dead, cancelled; did you mean delivered? There is no parameter "endpont" here; did you mean "endpoint"? There is no parameter "__proto__" here; there are limit, cursor, endpoint, parcel, state, from, to.',
      errors: [
        { parameter: 'limit', detail: 'limit must be given only once.' },
        { parameter: 'cursor', detail: 'cursor must be the next of a page.' },
        {
          parameter: 'state',
          detail: 'state must be one of queued, retrying, held, delivered, dead, cancelled; did you mean delivered?',
        },
        { parameter: 'endpont', detail: 'There is no parameter "endpont" here; did you mean "endpoint"?' },
        {
          parameter: '__proto__',
          detail: 'There is no parameter "__proto__" here; there are limit, cursor, endpoint, parcel, state, from, to.',
        },
      ],
    },
  ])
})
