import { createHmac } from 'node:crypto'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { AppError } from '../../../../src/core/domain/errors.ts'
import { signBody } from '../../../../src/core/domain/ingest/signature.ts'
import { eventually, KEY, PATH, push, raw, rawPush, startPublic } from '../harness.ts'

const BODY = '{ "status" : "Ingested",\r\n "detailedStatus":"Ingested" }\n'
const SIGNATURE = signBody(Buffer.from(BODY), KEY)
const length = (body: string) => `Content-Length: ${Buffer.byteLength(body)}`
const signed = (value: string) => `x-service-hmac-sha256: ${value}`

test('I1: a push with the right signature is recorded as its exact bytes', async () => {
  const { url, recorded, counted } = await startPublic()
  const answer = await push(url, BODY)
  expect([answer.status, await answer.text(), answer.headers.get('content-length')]).toEqual([200, '', '0'])
  expect(answer.headers.get('content-type')).toBeNull()
  expect(recorded.map(({ body, keyIndex, contentEncoding }) => [Buffer.from(body).toString(), keyIndex, contentEncoding])).toEqual([
    [BODY, 0, null],
  ])
  expect(counted).toEqual(['recorded'])
})

test('a POST to a wrong path is a 404 and is reported; a GET there is a 404, but not reported', async () => {
  const { url, misdirected } = await startPublic()
  const sent = { method: 'POST', body: BODY, headers: { 'x-service-hmac-sha256': SIGNATURE } }
  const answers = [
    await fetch(`${url}/webhook/status`, sent),
    await fetch(`${url}${PATH}/`, { ...sent, headers: {} }),
    await fetch(`${url}/webhook/status`),
    await push(url, BODY),
  ]
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 200])
  expect(misdirected).toEqual([
    { target: '/webhook/status', isSigned: true },
    { target: `${PATH}/`, isSigned: false },
  ])
})

test('I8: after a wrong signature, a valid push on the same connection is accepted', async () => {
  const { port, recorded } = await startPublic()
  const forged = signBody(Buffer.from(BODY), 'another-key-of-some-length')
  const two = [...rawPush([signed(forged), length(BODY)], BODY), ...rawPush([signed(SIGNATURE), length(BODY)], BODY)]
  const { text } = await raw(port, two, { until: (all) => all.includes(' 200 OK') })
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401', 'HTTP/1.1 200'])
  expect(recorded).toHaveLength(1)
})

test('I15: an address over its limit of failures gets a 429, but its valid push is accepted', async () => {
  const { url } = await startPublic({ failuresPerMinute: 3 })
  const statuses = []
  for (let attempt = 0; attempt < 5; attempt += 1) statuses.push((await push(url, BODY, { 'x-service-hmac-sha256': 'wrong' })).status)
  expect(statuses).toEqual([401, 401, 401, 429, 429])
  const refused = await push(url, BODY, { 'x-service-hmac-sha256': SIGNATURE.replace(/^./, (letter) => (letter === 'A' ? 'B' : 'A')) })
  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await push(url, BODY)).status).toBe(200)
})

test('I15, H10: a forwarded address is believed only from a trusted proxy', async () => {
  const fail = async (url: string, from: string) =>
    (await push(url, BODY, { 'x-service-hmac-sha256': 'wrong', 'x-forwarded-for': from })).status
  const open = await startPublic({ failuresPerMinute: 1 })
  expect([await fail(open.url, '192.0.2.1'), await fail(open.url, '192.0.2.2')]).toEqual([401, 429])
  const proxied = await startPublic({ failuresPerMinute: 1, trustProxy: ['127.0.0.0/8'] })
  expect([await fail(proxied.url, '192.0.2.1'), await fail(proxied.url, '192.0.2.2')]).toEqual([401, 401])
  expect(await fail(proxied.url, '198.51.100.9, 192.0.2.2')).toBe(429)
})

test.each([{ kind: 'duplicate' }, { kind: 'expired' }, { kind: 'quarantined', reason: 'schema' }] as const)(
  'a push that proves to be $kind is answered with an empty 200',
  async (outcome) => {
    const { url } = await startPublic({ submit: async () => outcome })
    const answer = await push(url, BODY)
    expect([answer.status, await answer.text()]).toEqual([200, ''])
  },
)

test('B19: an encoded body is verified and recorded in its encoded form', async () => {
  const { url, recorded } = await startPublic()
  const wire = Buffer.from('1f8b0800000000000003abae05004359b10102000000', 'hex')
  expect((await push(url, wire, { 'content-encoding': 'gzip, identity' })).status).toBe(200)
  expect(recorded.map(({ body, contentEncoding }) => [Buffer.from(body), contentEncoding])).toEqual([[wire, 'gzip, identity']])
})

test('a push gets a 200 only after it was stored, and a 503 if it cannot be stored', async () => {
  const gate = Promise.withResolvers<void>()
  let answered = false
  const { url, recorded } = await startPublic({ submit: () => gate.promise.then(() => ({ kind: 'duplicate' })) })
  const answer = push(url, BODY).finally(() => {
    answered = true
  })
  await push(url, BODY, { 'x-service-hmac-sha256': 'wrong' })
  expect([answered, recorded.length]).toEqual([false, 0])
  gate.resolve()
  expect((await answer).status).toBe(200)

  const broken = await startPublic({ submit: () => Promise.reject(new Error('SQLITE_FULL: /secret/path')) })
  const refusal = await push(broken.url, BODY)
  expect([refusal.status, refusal.headers.get('retry-after'), refusal.headers.get('cache-control')]).toEqual([503, '5', 'no-store'])
  const problem = await refusal.text()
  expect(JSON.parse(problem)).toMatchObject({ type: 'urn:parcel-relay:error:storage_unavailable', status: 503 })
  expect(problem).not.toContain('SQLITE')

  const hinting = await startPublic({ submit: () => Promise.reject(new AppError('storage_unavailable', 'full', { retryAfterMs: 61_000 })) })
  expect((await push(hinting.url, BODY)).headers.get('retry-after')).toBe('61')
})

test('the log line of a push that was refused or not stored has its trace id', async () => {
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const { url, lines } = await startPublic({ submit: () => Promise.reject(new Error('SQLITE_FULL')) })
  const traced = { traceparent: `00-${traceId}-00f067aa0ba902b7-01` }
  expect((await push(url, BODY, { ...traced, 'x-service-hmac-sha256': 'wrong' })).status).toBe(401)
  expect((await push(url, BODY, traced)).status).toBe(503)
  expect(lines.filter(({ fields }) => 'traceId' in fields)).toMatchObject([
    { level: 'debug', fields: { traceId, code: 'signature_invalid' } },
    { level: 'debug', fields: { traceId, code: 'storage_unavailable' } },
  ])
})

test('H3: a client that stalls in its headers or body is cut off with a 408', async () => {
  const { port } = await startPublic({ timeouts: { headersMs: 200, requestMs: 300 } })
  const body = await raw(port, rawPush([signed(SIGNATURE), 'Content-Length: 100'], 'x'))
  const headers = await raw(port, 'POST / HTTP/1.1\r\nHost: ')
  const silent = await raw(port, '')
  expect([body.status, body.closed, headers.status, headers.closed, silent.closed]).toEqual([408, true, 408, true, true])
})

test('H4: a client that disconnects during its body is neither recorded nor counted', async () => {
  const { port, recorded, counted, lines } = await startPublic()
  const socket = connect(port, '127.0.0.1')
  socket.write(`POST ${PATH} HTTP/1.1\r\nHost: relay\r\n${signed(SIGNATURE)}\r\nContent-Length: 100\r\n\r\nx`, () =>
    setImmediate(() => socket.resetAndDestroy()),
  )
  await eventually(() => lines.length > 0)
  expect([new Set(lines.map(({ level }) => level)), recorded.length, counted]).toEqual([new Set(['debug']), 0, []])
})

test('H7, H8: a wrong transfer coding, or two Host headers, gets a 400 and a closed connection', async () => {
  const { port, recorded } = await startPublic()
  const requests = [
    `POST ${PATH} HTTP/1.1\r\nHost: relay\r\n${signed(SIGNATURE)}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    `POST ${PATH} HTTP/1.0\r\n${signed(SIGNATURE)}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `GET /healthz HTTP/1.1\r\nHost: relay\r\nHost: evil\r\n\r\n`,
  ]
  for (const request of requests) expect(await raw(port, request)).toMatchObject({ status: 400, closed: true })
  expect(recorded).toEqual([])
})

test('H12: a client that waits for a 100 before its body gets it only if its headers are valid', async () => {
  const { port, recorded } = await startPublic()
  const expecting = (headers: readonly string[]) => rawPush([...headers, 'Expect: 100-continue'])
  expect((await raw(port, expecting([length(BODY)]))).text).toMatch(/^HTTP\/1\.1 401 /)
  expect((await raw(port, expecting([signed(SIGNATURE), 'Content-Length: 999999']))).text).toMatch(/^HTTP\/1\.1 413 /)
  expect((await raw(port, rawPush([signed(SIGNATURE), length(BODY), 'Expect: a-miracle', 'Connection: close']))).text).toMatch(
    /^HTTP\/1\.1 417 /,
  )
  const good = await raw(port, expecting([signed(SIGNATURE), length(BODY)]), { reply: BODY, until: (text) => text.includes(' 200 OK') })
  expect(good.text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/)
  expect(recorded).toHaveLength(1)
})

test('H13: too many headers get a 431', async () => {
  const { port } = await startPublic()
  const many = Array.from({ length: 1100 }, () => 'a: b')
  expect((await raw(port, rawPush([...many, 'Content-Length: 0']))).status).toBe(431)
  expect((await raw(port, rawPush([`a: ${'b'.repeat(20_000)}`]))).status).toBe(431)
})

test('H14: a header named __proto__ does no harm', async () => {
  const { port } = await startPublic()
  const answer = await raw(port, rawPush(['__proto__: x', signed(SIGNATURE), length(BODY), 'Connection: close'], BODY))
  expect(answer.status).toBe(200)
})

test('H17: pipelined pushes are each answered, in order', async () => {
  const { port, recorded } = await startPublic()
  const bodies = Array.from({ length: 100 }, (_, index) => `{"n":${index}}`)
  const requests = bodies.flatMap((body) => rawPush([signed(signBody(Buffer.from(body), KEY)), length(body)], body))
  const { text } = await raw(port, requests, { until: (all) => all.split(' 200 OK').length > 100 })
  expect(text.split(' 200 OK')).toHaveLength(101)
  expect(recorded.map(({ body }) => Buffer.from(body).toString())).toEqual(bodies)
})

test('X7: bodies over the shared limit get a 503, and small ones are accepted', async () => {
  const { url, port, recorded } = await startPublic({ bytesInFlightMax: 40_000, connectionsMax: 10 })
  const large = 'x'.repeat(15_000)
  // Each of the 10 connections has 2,000 bytes of its own, and all share 20,000 more. `holder` uses 13,000 of the shared bytes.
  const holder = connect(port, '127.0.0.1')
  for (const part of rawPush([signed(SIGNATURE), 'Content-Length: 15001'], large)) holder.write(part)
  const refused = async () => {
    const answer = await push(url, large)
    return answer.status === 503 && Number(answer.headers.get('retry-after')) > 0
  }
  let seen = false
  for (let attempt = 0; attempt < 100 && !seen; attempt += 1) seen = await refused()
  expect(seen).toBe(true)
  expect((await push(url, BODY)).status).toBe(200)
  expect(recorded.some(({ body }) => body.byteLength === Buffer.byteLength(BODY))).toBe(true)
  holder.destroy()
  let whole = false
  for (let attempt = 0; attempt < 100 && !whole; attempt += 1) whole = (await push(url, large)).status === 200
  expect(whole).toBe(true)
})

test('an error answer has a fixed type and an id, and repeats no input and no software name', async () => {
  const { url } = await startPublic()
  const answer = await push(url, 'echo-me-not', {
    'x-service-hmac-sha256': createHmac('sha256', 'other').update('echo-me-not').digest('base64'),
  })
  expect(answer.headers.get('content-type')).toBe('application/problem+json')
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect([answer.headers.get('server'), answer.headers.get('x-powered-by')]).toEqual([null, null])
  const text = await answer.text()
  expect(text).not.toContain('echo-me-not')
  expect(JSON.parse(text)).toEqual({
    type: 'urn:parcel-relay:error:signature_invalid',
    title: expect.any(String),
    status: 401,
    detail: expect.any(String),
    instance: expect.stringMatching(/^urn:uuid:[0-9a-f-]{36}$/),
  })
})

test('X1: a stop finishes requests in flight, accepts no new ones, and ends', async () => {
  const gate = Promise.withResolvers<void>()
  let submitted = false
  const { server, port, url } = await startPublic({
    submit: () => {
      submitted = true
      return gate.promise.then(() => ({ kind: 'duplicate' }))
    },
  })
  const inFlight = raw(port, rawPush([signed(SIGNATURE), length(BODY)], BODY))
  await eventually(() => submitted)
  const stopped = server.stop(5000)
  // A connection that opened before the stop may still get one answer, so only the second request must fail.
  await fetch(`${url}/healthz`).catch(() => null)
  await expect(fetch(`${url}/healthz`)).rejects.toThrow()
  gate.resolve()
  expect(await inFlight).toMatchObject({ status: 200, closed: true })
  await stopped
})

test('X1: a stop answers all pipelined pushes, and only the last answer closes the connection', async () => {
  const gate = Promise.withResolvers<void>()
  let submitted = 0
  const { server, port } = await startPublic({
    submit: () => {
      submitted += 1
      return gate.promise.then(() => ({ kind: 'duplicate' }))
    },
  })
  const one = rawPush([signed(SIGNATURE), length(BODY)], BODY)
  const inFlight = raw(port, [...one, ...one, ...one])
  await eventually(() => submitted === 3)
  const stopped = server.stop(5000)
  gate.resolve()
  const { text, closed } = await inFlight
  expect([text.split(' 200 OK').length - 1, text.match(/^connection: .*$/gim), closed]).toEqual([
    3,
    ['Connection: keep-alive', 'Connection: keep-alive', 'Connection: close'],
    true,
  ])
  await stopped
})
