import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import type { CarrierMemory } from '../../../src/core/domain/polling/call-budget.ts'
import { certificate } from '../outbound/self-signed.ts'
import { closeOpened, connect, goodBody, json, openCarrier, openHttp, openRaw, openTls, refusingUrl, until } from './carrier-double.ts'

afterEach(closeOpened)

const tokenAnswer = 'HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n{"token":"t"}'

/** Opens a carrier that gives valid tokens, answers each status request with `bytes`, and then calls `then`. */
function openRawStatus(bytes: string, then: (socket: Socket) => void) {
  return openRaw((socket) => {
    socket.on('data', (data) => {
      if (data.toString().startsWith('POST')) return socket.write(tokenAnswer)
      socket.write(bytes)
      return then(socket)
    })
  })
}

describe('a request to the carrier', () => {
  test('asks for /all in a language, uncompressed and with the token, and reads the answer', async () => {
    const seen: unknown[] = []
    const { url, asked } = await openCarrier({
      status: (request, response) => {
        seen.push(request.method, request.url, request.headers.accept, request.headers['accept-encoding'])
        json(response, 200, goodBody, { 'content-language': 'sv' })
      },
    })
    const { carrier, fetchAll } = connect(`${url}/`, { authUrl: `${url}/auth/token` })
    expect(carrier.state()).toMatchObject({ credentials: 'unknown', lastAnswerAtMs: null, lastFailure: null })
    const answer = await fetchAll()
    expect(answer).toMatchObject({
      kind: 'found',
      observation: { asked: 'AB123456789SE', language: 'sv', trackingIds: ['370000000000000001'] },
    })
    expect(seen).toEqual(['GET', '/v1/status/AB123456789SE/all?language=en', 'application/json', 'identity'])
    expect(asked.bearers).toEqual(['Bearer token-1'])
    expect(asked.tokenBodies).toEqual([JSON.stringify({ username: 'acme', password: 'canary-password-Zq8' })])
    expect(carrier.state()).toMatchObject({ credentials: 'accepted', budget: { waiting: 0, inFlight: 0, callsToday: 2 } })
  })

  test('keeps the exact bytes of the answer and the time of the request', async () => {
    const { url } = await openCarrier()
    const { fetchAll } = connect(url)
    const beforeMs = Date.now()
    const answer = await fetchAll('schedule')
    if (answer.kind !== 'found') throw new Error(answer.kind)
    expect(Buffer.from(answer.observation.body).toString()).toBe(goodBody)
    expect(answer.observation.askedAtMs).toBeGreaterThanOrEqual(Math.floor(beforeMs))
    expect(answer.observation.askedAtMs).toBeLessThanOrEqual(Date.now())
  })

  test('P13: is dated later than the request before it, even if the clock is put back', async () => {
    const { url } = await openCarrier()
    let nowMs = Date.now()
    const { fetchAll } = connect(url, { clock: { now: () => nowMs, monotonic: () => performance.now() } })
    const askedAt = async () => {
      const answer = await fetchAll()
      if (answer.kind !== 'found') throw new Error(answer.kind)
      return answer.observation.askedAtMs
    }
    const first = await askedAt()
    nowMs -= 3_600_000
    const second = await askedAt()
    expect([second > first, second < first + 1000]).toEqual([true, true])
    nowMs += 2 * 3_600_000
    expect(await askedAt()).toBe(nowMs)
  })

  test.each([404, 410])('P6: %i means that the parcel is not found, and a later 200 that it is found', async (status) => {
    const { url } = await openCarrier({ status: (_, response, count) => json(response, count === 1 ? status : 200, goodBody) })
    const { fetchAll } = connect(url)
    expect(await fetchAll()).toEqual({ kind: 'not_found' })
    expect((await fetchAll()).kind).toBe('found')
  })

  test.each([400, 403, 405, 418, 422])('a %i counts as rejected, not as not found', async (status) => {
    const { url, asked } = await openCarrier({ status: (_, response) => json(response, status, '{}') })
    expect(await connect(url).fetchAll()).toEqual({ kind: 'unavailable', reason: 'rejected' })
    expect(asked.status).toBe(1)
  })

  test('is unavailable, but not a failure, if it is aborted or the client is closed', async () => {
    const { url, asked } = await openCarrier({ status: () => null })
    const { carrier, fetchAll } = connect(url)
    const taken = new AbortController()
    const answer = carrier.fetchAll({
      identifier: 'AB123456789SE',
      language: 'en',
      priority: 'app',
      spender: 'app:shop',
      signal: taken.signal,
    })
    await until(() => asked.status === 1)
    taken.abort()
    expect(await answer).toEqual({ kind: 'unavailable', reason: 'timeout' })
    const hanging = fetchAll('schedule')
    await until(() => asked.status === 2)
    await carrier.close()
    expect(await hanging).toEqual({ kind: 'unavailable', reason: 'timeout' })
    expect(await fetchAll()).toEqual({ kind: 'unavailable', reason: 'timeout' })
    expect(carrier.state()).toMatchObject({ lastFailure: null, budget: { inFlight: 0, waiting: 0 } })
    expect(
      await carrier.fetchAll({ identifier: 'A', language: 'en', priority: 'app', spender: 'app:shop', signal: taken.signal }),
    ).toMatchObject({
      reason: 'timeout',
    })
  })
})

describe('problems of the carrier', () => {
  test.each([502, 503, 504])('P1: a %i is retried at most twice, and each try counts as a call', async (status) => {
    const { url, asked } = await openCarrier({ status: (_, response) => json(response, status, '') })
    const { carrier, fetchAll } = connect(url)
    expect(await fetchAll('schedule')).toEqual({ kind: 'unavailable', reason: 'server_error' })
    expect(asked.status).toBe(3)
    expect(carrier.state()).toMatchObject({ lastFailure: { reason: 'server_error' }, budget: { callsToday: 4, inFlight: 0 } })
  })

  test.each([
    [403, '{"error":"no subscription for parcel 731"}\nmore', '{"error":"no subscription for parcel …"}'],
    [422, 'the number AB12 is odd', 'the number … is odd'],
    [500, '', undefined],
  ])('P1: the first line of a %i is kept as said, without what may name a parcel', async (status, body, said) => {
    const { url } = await openCarrier({ status: (_, response) => json(response, status, body) })
    const { carrier, fetchAll } = connect(url)
    await fetchAll('schedule')
    expect(carrier.state().lastFailure?.said).toBe(said)
  })

  test('P1: a 503 followed by a good answer does not show in the result', async () => {
    const { url, asked } = await openCarrier({ status: (_, response, count) => json(response, count === 1 ? 503 : 200, goodBody) })
    expect((await connect(url).fetchAll()).kind).toBe('found')
    expect(asked.status).toBe(2)
  })

  test('P1: a 500 is not retried', async () => {
    const { url, asked } = await openCarrier({ status: (_, response) => json(response, 500, 'boom') })
    expect(await connect(url).fetchAll()).toEqual({ kind: 'unavailable', reason: 'server_error' })
    expect(asked.status).toBe(1)
  })

  test('P1: a refused connection and an unknown host are network failures', async () => {
    const refusing = await refusingUrl()
    const { carrier, fetchAll } = connect(refusing)
    expect(await fetchAll()).toMatchObject({ kind: 'unavailable', reason: 'network' })
    expect(carrier.state().budget.callsToday).toBe(3)
    const { url } = await openCarrier()
    const lost = connect('http://does-not-exist.invalid', { authUrl: `${url}/auth/token` })
    expect(await lost.fetchAll()).toMatchObject({ kind: 'unavailable', reason: 'network' })
  })

  test('P1: a connection reset before the answer is retried', async () => {
    const { url, asked } = await openCarrier({
      status: (request, response, count) => (count === 1 ? request.socket.destroy() : json(response, 200, goodBody)),
    })
    expect((await connect(url).fetchAll()).kind).toBe('found')
    expect(asked.status).toBe(2)
  })

  test('P1: a certificate that is untrusted, or for another host, fails before anything is sent', async () => {
    let requests = 0
    const url = await openTls((_request, response) => {
      requests += 1
      json(response, 200, '{"token":"t"}')
    })
    expect(await connect(url).fetchAll()).toMatchObject({ kind: 'unavailable', reason: 'network' })
    const otherName = connect(url.replace('localhost', '127.0.0.1'), { ca: certificate })
    expect(await otherName.fetchAll()).toMatchObject({ kind: 'unavailable', reason: 'network' })
    expect(requests).toBe(0)
  })

  test('trusts a configured certificate authority', async () => {
    const url = await openTls((request, response) => json(response, 200, request.method === 'POST' ? '{"token":"t"}' : goodBody))
    expect((await connect(url, { ca: certificate }).fetchAll()).kind).toBe('found')
  })

  test('P2: the deadline ends a request whose answer never comes or drips, and frees its slot', async () => {
    const drip = (part: string) => (socket: Socket) => {
      const timer = setInterval(() => socket.write(part), 20)
      socket.once('close', () => clearInterval(timer))
    }
    const silent = await openRawStatus('', () => null)
    const headers = await openRawStatus('HTTP/1.1 200 OK\r\n', drip('x-drip: 1\r\n'))
    const body = await openRawStatus('HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n', drip(' '))
    const lie = await openRawStatus('HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n{}', () => null)
    for (const url of [silent, headers, body, lie]) {
      const { carrier, fetchAll } = connect(url, { timeoutMs: 150, concurrency: 1 })
      // Without a deadline this would never end, because each answer lasts as long as its connection.
      expect(await fetchAll('schedule')).toEqual({ kind: 'unavailable', reason: 'timeout' })
      expect(carrier.state().budget.inFlight).toBe(0)
    }
  })

  test('P2: a request that hangs does not delay requests for other parcels', async () => {
    const { url } = await openCarrier({
      status: (request, response) => (request.url?.includes('HANGS') ? null : json(response, 200, goodBody)),
    })
    const { carrier, fetchAll } = connect(url, { concurrency: 2 })
    const hanging = fetchAll('schedule', 'HANGS1')
    for (let n = 0; n < 5; n++) expect((await fetchAll()).kind).toBe('found')
    await carrier.close()
    expect((await hanging).kind).toBe('unavailable')
  })

  test.each([
    ['HTML', '<!doctype html><p>maintenance', {}],
    ['truncated JSON', goodBody.slice(0, -5), {}],
    ['a BOM', `\ufeff${goodBody}`, {}],
    ['nothing', '', {}],
    ['an array', '[]', {}],
    ['an error object', '{"error":"not yet"}', {}],
    ['more than 1 MB', ' '.repeat(1_048_577), {}],
    ['an encoding that was not asked for', goodBody, { 'content-encoding': 'br' }],
  ])('P3: a 200 with %s is a bad response and is not retried', async (_name, body, headers) => {
    const { url, asked } = await openCarrier({ status: (_, response) => json(response, 200, body, headers) })
    expect(await connect(url).fetchAll()).toEqual({ kind: 'unavailable', reason: 'bad_response' })
    expect(asked.status).toBe(1)
  })

  test('P3: a body of exactly 1 MB is read', async () => {
    const { url } = await openCarrier({ status: (_, response) => json(response, 200, goodBody.padEnd(1_048_576)) })
    expect((await connect(url).fetchAll()).kind).toBe('found')
  })

  test('P3: an endless body is read up to 1 MB', async () => {
    let written = 0
    const { url } = await openCarrier({
      status: (_request, response) => {
        response.writeHead(200)
        const chunk = Buffer.alloc(65_536, 0x20)
        const more = (): void => {
          while (!response.destroyed && response.write(chunk)) written += chunk.length
          written += chunk.length
        }
        response.on('drain', more)
        more()
      },
    })
    expect(await connect(url).fetchAll()).toEqual({ kind: 'unavailable', reason: 'bad_response' })
    expect(written).toBeLessThan(50_000_000)
  })

  test('P3: gzip nested 50 times is not inflated', async () => {
    let body: Buffer = Buffer.from(goodBody)
    for (let n = 0; n < 50; n++) body = gzipSync(body)
    const { url } = await openCarrier({
      status: (_, response) =>
        response.writeHead(200, { 'content-encoding': Array.from({ length: 50 }, () => 'gzip').join(', ') }).end(body),
    })
    expect(await connect(url).fetchAll()).toEqual({ kind: 'unavailable', reason: 'bad_response' })
  })

  test('P3: a body that is cut off anywhere is a bad response', async () => {
    const promised = await openRawStatus(`HTTP/1.1 200 OK\r\ncontent-length: ${goodBody.length + 1}\r\n\r\n${goodBody}`, (socket) =>
      socket.end(),
    )
    const chunked = await openRawStatus(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfff\r\n${goodBody}`, (socket) => socket.end())
    const closed = await openRawStatus(`HTTP/1.1 200 OK\r\n\r\n${goodBody.slice(0, -1)}`, (socket) => socket.end())
    const noHttp = await openRawStatus('SSH-2.0-OpenSSH_9.9\r\n', () => null)
    for (const url of [promised, chunked, closed, noHttp]) {
      expect(await connect(url, { timeoutMs: 1_000 }).fetchAll()).toEqual({ kind: 'unavailable', reason: 'bad_response' })
    }
  })

  test.each([301, 302, 303, 307, 308])('P4: a redirect %i is not followed, and is logged only once', async (status) => {
    let strangers = 0
    const elsewhere = await openHttp((_request, response) => {
      strangers += 1
      json(response, 200, goodBody)
    })
    const { url, asked } = await openCarrier({
      status: (_, response) => response.writeHead(status, { location: `${elsewhere}/v1/status/AB123456789SE/all` }).end(),
    })
    const { fetchAll, lines } = connect(url)
    for (let n = 0; n < 3; n++) expect(await fetchAll()).toEqual({ kind: 'unavailable', reason: 'redirect' })
    expect([asked.status, strangers]).toEqual([3, 0])
    expect(lines.filter((line) => line.includes('"level":"error"') && line.includes('redirect'))).toHaveLength(1)
  })

  test('P4: the credentials are not sent to the target of a redirect', async () => {
    let strangers = 0
    const elsewhere = await openHttp((_request, response) => {
      strangers += 1
      json(response, 200, '{"token":"t"}')
    })
    const { url, asked } = await openCarrier({ token: (_, response) => response.writeHead(307, { location: elsewhere }).end() })
    expect(await connect(url).fetchAll()).toMatchObject({ kind: 'unavailable', reason: 'redirect' })
    expect([asked.token, asked.status, strangers]).toEqual([1, 0, 0])
  })

  test.each([
    ['5', 5_000],
    ['-1', 30_000],
    ['1000000000', 3_600_000],
    ['in a while', 30_000],
    [undefined, 30_000],
  ])('P5: a 429 with Retry-After %s stops all calls for %i ms', async (header, waitMs) => {
    const { url, asked } = await openCarrier({
      status: (_, response, count) =>
        count === 1 ? json(response, 429, '', header === undefined ? {} : { 'retry-after': header }) : json(response, 200, goodBody),
    })
    const { fetchAll, move } = connect(url, { timeoutMs: 1_000 })
    expect(await fetchAll()).toEqual({ kind: 'unavailable', reason: 'rate_limited', retryAfterMs: waitMs })
    move(waitMs - 2_000)
    for (const priority of ['app', 'schedule'] as const) expect(await fetchAll(priority)).toMatchObject({ reason: 'rate_limited' })
    expect(asked.status).toBe(1)
    move(2_000)
    expect((await fetchAll()).kind).toBe('found')
  })

  test('P5: an HTTP date in Retry-After is compared with the wall clock', async () => {
    const { url } = await openCarrier({
      status: (_, response) => json(response, 429, '', { 'retry-after': new Date(Date.now() + 60_000).toUTCString() }),
    })
    const answer = await connect(url).fetchAll()
    if (answer.kind !== 'unavailable') throw new Error(answer.kind)
    expect(answer.retryAfterMs).toBeGreaterThan(57_000)
    expect(answer.retryAfterMs).toBeLessThanOrEqual(60_000)
  })

  test('P5: a 503 with Retry-After is obeyed, and not retried at once', async () => {
    const { url, asked } = await openCarrier({ status: (_, response) => json(response, 503, '', { 'retry-after': '90' }) })
    const { fetchAll } = connect(url)
    expect(await fetchAll()).toEqual({ kind: 'unavailable', reason: 'server_error', retryAfterMs: 90_000 })
    expect(await fetchAll('schedule')).toMatchObject({ kind: 'unavailable', reason: 'rate_limited' })
    expect(asked.status).toBe(1)
  })

  test('a lasting problem is logged in one line, and its end in another', async () => {
    const { url } = await openCarrier({ status: (_, response, count) => json(response, count < 4 ? 500 : 200, goodBody) })
    const { fetchAll, lines } = connect(url)
    for (let n = 0; n < 5; n++) await fetchAll()
    expect(lines.filter((line) => /is down|answers again/.test(line) && !line.includes('"debug"'))).toHaveLength(2)
  })
})

const aMemory = (fields: Partial<CarrierMemory> = {}): CarrierMemory => ({
  atMs: Date.now(),
  days: [],
  pausedUntilMs: null,
  tokenPausedUntilMs: null,
  refusal: null,
  ...fields,
})

describe('the budget of calls', () => {
  test('allows no call when the day’s calls, including token requests, are used up', async () => {
    const { url, asked } = await openCarrier()
    const { fetchAll, carrier } = connect(url, {
      callsPerDay: 10,
      memory: aMemory({ days: [{ day: Math.floor(Date.now() / 86_400_000), calls: 7 }] }),
    })
    expect((await fetchAll()).kind).toBe('found')
    expect((await fetchAll('schedule')).kind).toBe('found')
    for (const priority of ['app', 'schedule'] as const) {
      const answer = await fetchAll(priority)
      expect(answer).toMatchObject({ kind: 'unavailable', reason: 'budget' })
      expect(answer).toHaveProperty('retryAfterMs', expect.any(Number))
    }
    expect(asked.status).toBe(2)
    expect(carrier.state().budget).toMatchObject({ callsToday: 10, callsPerDay: 10 })
  })

  test('saves each call before it is made, and a requested pause before it returns the answer', async () => {
    const kept: CarrierMemory[] = []
    const { url, asked } = await openCarrier({
      status: (_, response, count) => json(response, count > 2 ? 429 : 404, '', { 'retry-after': '60' }),
    })
    const callsWritten = () => kept.at(-1)?.days.reduce((sum, { calls }) => sum + calls, 0) ?? 0
    const { carrier, fetchAll } = connect(url, {
      callsPerDay: 500,
      remember: async (memory) => {
        await new Promise((resolve) => setImmediate(resolve))
        kept.push(memory)
      },
    })
    for (let at = 0; at < 3; at++) {
      await fetchAll()
      expect(callsWritten()).toBeGreaterThanOrEqual(asked.token + asked.status)
    }
    expect((kept.at(-1)?.pausedUntilMs ?? 0) - Date.now()).toBeGreaterThan(50_000)
    await carrier.close()
    expect(callsWritten()).toBe(4)
  })

  test.each([
    ['a wait from a minute ago continues', -60_000, 540_000],
    ['a wait from before the clock was put back begins again', 3_600_000, 600_000],
    ['a wait from an hour ago is over', -3_600_000, null],
  ])('after a restart, %s', async (_name, writtenAtMs, waitMs) => {
    const { url, asked } = await openCarrier()
    const atMs = Date.now() + writtenAtMs
    const { fetchAll } = connect(url, { timeoutMs: 1_000, memory: aMemory({ atMs, pausedUntilMs: atMs + 600_000 }) })
    const answer = await fetchAll()
    expect([answer.kind, asked.status]).toEqual(waitMs === null ? ['found', 1] : ['unavailable', 0])
    const retryAfterMs = answer.kind === 'unavailable' ? (answer.retryAfterMs ?? 0) : 0
    expect(Math.abs(retryAfterMs - (waitMs ?? 0))).toBeLessThan(10_000)
  })

  test('has at most as many requests in flight as the concurrency allows', async () => {
    let inFlight = 0
    let most = 0
    const { url } = await openCarrier({
      status: (_request, response) => {
        most = Math.max(most, ++inFlight)
        setTimeout(() => {
          inFlight -= 1
          json(response, 200, goodBody)
        }, 5)
      },
    })
    const { fetchAll } = connect(url, { concurrency: 3 })
    const answers = await Promise.all(Array.from({ length: 60 }, () => fetchAll('schedule')))
    expect(answers.every((answer) => answer.kind === 'found')).toBe(true)
    expect(most).toBe(3)
  })

  test('refuses an app at once if its turn would come after its deadline', async () => {
    const { url, asked } = await openCarrier()
    const { fetchAll } = connect(url, { ratePerSecond: 0.1, timeoutMs: 5_000 })
    const answer = await fetchAll('app')
    expect(answer).toMatchObject({ kind: 'unavailable', reason: 'budget' })
    if (answer.kind === 'unavailable') expect(answer.retryAfterMs).toBeGreaterThan(5_000)
    expect([asked.token, asked.status]).toEqual([1, 0])
  })
})
