import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { raw } from '../core/http/harness.ts'
import { pushBody } from '../support/history/builders.ts'
import { rawRequest, signed, startWorld, type World } from './world.ts'

const LIMIT = 262_144
const KNOWN = '90000001'

let world: World
beforeAll(async () => {
  world = await startWorld()
  expect((await world.push(pushBody({ trackingIds: [KNOWN] }))).status).toBe(200)
})
afterAll(() => world.stop())

const header = (value: string) => `x-service-hmac-sha256: ${value}`
const tooLarge = () => world.metric('relay_pushes_received_total{outcome="body_too_large",key="none"}')

/** Makes an event whose body has exactly this many bytes. */
function eventOf(bytes: number, id: string): Buffer {
  const fill = bytes - pushBody({ trackingIds: [id], distributionType: '' }).length
  return pushBody({ trackingIds: [id], distributionType: 'x'.repeat(fill) })
}

function chunked(body: Buffer, size: number): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < body.length; at += size) {
    const part = body.subarray(at, at + size)
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'))
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

/** Reads the answer only after the last byte was sent, as a simple client does. Rejects if the server closes the connection before that. */
function sendThenRead(port: number, parts: readonly (string | Uint8Array)[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    socket.pause()
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
    })
    socket.on('error', reject).on('end', () => resolve(text))
    socket.write(Buffer.concat(parts.map((part) => Buffer.from(part))), () => socket.resume())
  })
}

describe('bodies that are too large', () => {
  test('H1: a body declared over the limit gets a 413 that the sender can read, and is not stored', async () => {
    const body = eventOf(8_000_000, '90000002')
    const [rows, counted] = [await world.inbox.count(), await tooLarge()]
    const request = rawRequest('POST', [`Content-Length: ${body.length}`, header(signed(body))], body)
    const answers = await Promise.all(Array.from({ length: 10 }, () => sendThenRead(world.publicPort, request)))
    for (const answer of answers) {
      expect(answer).toMatch(/^HTTP\/1\.1 413 /)
      expect(answer).toMatch(/\r\nConnection: close\r\n/i)
      expect(answer).toContain('urn:parcel-relay:error:body_too_large')
    }
    expect([await world.inbox.count(), await tooLarge()]).toEqual([rows, counted + 10])
  })

  test('H2: a chunked body over the limit gets a 413 that the sender can read, and is not stored', async () => {
    const [rows, counted] = [await world.inbox.count(), await tooLarge()]
    const body = eventOf(LIMIT + 1, '90000003')
    for (const size of [LIMIT + 1, 16_384, 1000]) {
      const answer = await raw(
        world.publicPort,
        rawRequest('POST', ['Transfer-Encoding: chunked', header(signed(body))], chunked(body, size)),
      )
      expect([size, answer.status, answer.closed]).toEqual([size, 413, true])
      expect(answer.text).toMatch(/\r\nConnection: close\r\n/i)
      expect(answer.text).toContain('urn:parcel-relay:error:body_too_large')
    }
    expect([await world.inbox.count(), await tooLarge()]).toEqual([rows, counted + 3])
  })

  test('H1, H2: a body of exactly the limit is recorded, with a declared length or chunked', async () => {
    const [declared, streamed] = [eventOf(LIMIT, '90000004'), eventOf(LIMIT, '90000005')]
    expect((await world.push(declared)).status).toBe(200)
    const answer = await raw(
      world.publicPort,
      rawRequest('POST', ['Transfer-Encoding: chunked', header(signed(streamed))], chunked(streamed, 50_000)),
      { until: (text) => text.includes('\r\n\r\n') },
    )
    expect(answer.status).toBe(200)
    for (const body of [declared, streamed]) expect((await world.inbox.rowOf(body)).state).toBe('recorded')
  })
})

describe('methods', () => {
  const body = pushBody({ trackingIds: ['90000006'] })

  test.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY'])(
    'H11: a signed %s on the webhook gets a 405 that allows only POST, and is not stored',
    async (method) => {
      const headers = [header(signed(body)), `Content-Length: ${body.length}`, 'Connection: close']
      const answer = await raw(world.publicPort, rawRequest(method, headers, body))
      expect(answer.status).toBe(405)
      expect(/\r\nAllow: (.*)\r\n/i.exec(answer.text)?.[1]).toBe('POST')
      expect(await world.inbox.rowsOf(body)).toEqual([])
    },
  )

  test('H11: CONNECT closes the connection without a tunnel', async () => {
    for (const target of ['/webhooks/status', '127.0.0.1:1']) {
      const answer = await raw(world.publicPort, `CONNECT ${target} HTTP/1.1\r\nHost: relay\r\n\r\n`)
      expect(answer).toMatchObject({ text: '', closed: true })
    }
    expect((await fetch(`${world.publicUrl}/healthz`)).status).toBe(200)
  })
})

/** Sends a GET with a token for the exact target, which `fetch` would normalise. */
async function statusOf(target: string): Promise<readonly [number, string]> {
  const request = `GET ${target} HTTP/1.1\r\nHost: relay\r\nConnection: close\r\nAuthorization: Bearer ${world.token}\r\n\r\n`
  const { status, text } = await raw(world.internalPort, Buffer.from(request).toString('latin1'))
  return [status, /urn:parcel-relay:error:(\w+)/.exec(text)?.[1] ?? '']
}

const encoded = (text: string) => encodeURIComponent(text)

describe('identifiers and languages', () => {
  test.each(['%E0%A4%A', '%', '%ff', '%2', '%zz', '%c0%af', 'AB12%'])(
    'H19: %s is not a tracking number, and gets a 400, not a 500',
    async (text) => {
      const asked = world.carrier.asked.status
      for (const kind of ['latest', 'all']) expect(await statusOf(`/v1/status/${text}/${kind}`)).toEqual([400, 'bad_tracking_number'])
      expect(world.carrier.asked.status).toBe(asked)
    },
  )

  test.each([
    '..%2f..%2fadmin',
    '..%5c..%5cadmin',
    '%2e%2e%2f%2e%2e',
    'AB12%00',
    '%00',
    '%0AAB1234',
    'AB12%0d%0aX-Evil:%201',
    'AB12%0a',
    'a%2Fb12',
    'AB12;x',
    'AB12%3F',
    'AB12%23x',
    'AB12%26x=1',
    'AB12%253F',
    '%2541B12',
    'AB%2012',
    'AB-12',
    'ABC',
    'A'.repeat(41),
    'A'.repeat(5000),
    encoded('ABÉ1234'),
    encoded('é'.repeat(8)),
    encoded('１２３４５'),
    encoded('ＡＢＣＤ'),
    encoded('٤٤٤٤'),
    encoded('ABCıſK'),
    encoded('AB12\u200b'),
    encoded('\u00a0AB12'),
    encoded('😀😀'),
    '%20',
    '__proto__',
  ])('H20: %s is no tracking number, and gets a 400 without reaching carrier, store or log', async (text) => {
    const asked = world.carrier.asked.status
    for (const kind of ['latest', 'all']) expect(await statusOf(`/v1/status/${text}/${kind}`)).toEqual([400, 'bad_tracking_number'])
    expect(world.carrier.asked.status).toBe(asked)
    expect(JSON.stringify(world.lines)).not.toContain('Evil')
  })

  test('H20: an identifier in a request to the carrier is one plain segment, in upper case', async () => {
    expect(await statusOf('/v1/status/%20ab9000077se%20/all')).toEqual([404, 'not_found'])
    expect(world.carrier.asked.urls.at(-1)).toBe('/v1/status/AB9000077SE/all?language=en')
  })

  test.each([
    'language=en&language=sv',
    'language=en&language=en',
    'language[]=en',
    'language[0]=en',
    'language%5B%5D=en',
    'language=%E0',
    'language=%00',
    'language=',
    'language',
    `language=en${'&language=en'.repeat(500)}`,
    `${'a=1&'.repeat(3000)}language=en`,
    'language=en%0d%0aX-Evil:%201',
    `language=${'e'.repeat(5000)}`,
    'language=en/../sv',
    Array.from({ length: 3000 }, (_, at) => `a${at}=1`)
      .join('&')
      .slice(0, 15_000),
  ])('H21: ?%.60s is not a language, and gets a 400 without a call to the carrier', async (query) => {
    const asked = world.carrier.asked.status
    for (const id of [KNOWN, '90000099']) expect(await statusOf(`/v1/status/${id}/all?${query}`)).toEqual([400, 'bad_language'])
    expect(world.carrier.asked.status).toBe(asked)
  })
})

describe('paths', () => {
  const body = pushBody({ trackingIds: ['90000007'] })

  test.each([
    '/webhooks/status/',
    '/webhooks//status',
    '//webhooks/status',
    '/WEBHOOKS/STATUS',
    '/webhooks/Status',
    '/webhooks/status%20',
    '/webhooks%2Fstatus',
    '/webhooks/./status/x',
    '/webhooks',
    '/',
    '*',
    '/healthz/',
    '/HEALTHZ',
    '//healthz',
  ])('H22, 5.5: a signed POST to %s gets a 404, never a redirect, and is not stored', async (target) => {
    const headers = [header(signed(body)), `Content-Length: ${body.length}`, 'Connection: close']
    const answer = await raw(world.publicPort, rawRequest('POST', headers, body, target))
    expect([answer.status, /\r\nLocation:/i.test(answer.text)]).toEqual([404, false])
    expect(await world.inbox.rowsOf(body)).toEqual([])
  })

  test.each([
    `/v1/status/${KNOWN}/all/`,
    `/v1/status/${KNOWN}/ALL`,
    `/V1/status/${KNOWN}/all`,
    `//v1/status/${KNOWN}/all`,
    `/v1//status/${KNOWN}/all`,
    `/v1/status//all`,
    `/v1/status/${KNOWN}`,
    `/v1/status/${KNOWN}/all/latest`,
    `/v1/../v1/status/${KNOWN}/all`,
    '/auth/token/',
    '/AUTH/token',
    '*',
    '/healthz/',
    '/READYZ',
    '//metrics',
  ])('H22: GET %s gets a 404 on the internal listener, never a redirect', async (target) => {
    expect(await statusOf(target)).toEqual([404, 'no_such_address'])
  })

  test('H22: the internal listener accepts no push, and stores none', async () => {
    const headers = [header(signed(body)), `Content-Length: ${body.length}`, 'Connection: close']
    const answer = await raw(world.internalPort, rawRequest('POST', headers, body))
    expect([403, 404, 405]).toContain(answer.status)
    expect(await world.inbox.rowsOf(body)).toEqual([])
  })

  test('H18: on both listeners, only the path of an absolute URL counts', async () => {
    expect((await statusOf(`http://evil.example/v1/status/${KNOWN}/all`))[0]).toBe(200)
    const atPublic = (target: string) => raw(world.publicPort, `GET ${target} HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n`)
    expect((await atPublic('http://evil.example/healthz')).status).toBe(200)
    expect((await atPublic('http://[::1/healthz')).status).not.toBe(500)
  })

  test('H22: the public listener serves only the webhook and /healthz', async () => {
    for (const path of ['/metrics', '/readyz', '/auth/token', `/v1/status/${KNOWN}/all`, '/relay/parcels', '/docs', '/openapi.json']) {
      expect([path, (await fetch(`${world.publicUrl}${path}`, { redirect: 'manual' })).status]).toEqual([path, 404])
    }
  })
})

test('H4: a client that disconnects during its body leaves no row and no error in the log', async () => {
  const body = pushBody({ trackingIds: ['90000008'] })
  const rows = await world.inbox.count()
  const linesBefore = world.lines.length
  const [head] = rawRequest('POST', [header(signed(body)), `Content-Length: ${body.length}`])
  await Promise.all(
    Array.from({ length: 10 }, async () => {
      const socket = connect(world.publicPort, '127.0.0.1')
      const closed = new Promise((resolve) => socket.once('close', resolve))
      socket.write(Buffer.concat([Buffer.from(head), body.subarray(0, 100)]), () => socket.resetAndDestroy())
      await closed
    }),
  )
  expect((await world.push(pushBody({ trackingIds: [KNOWN] }))).status).toBe(200)
  expect([await world.inbox.count(), await world.inbox.rowsOf(body)]).toEqual([rows, []])
  expect(world.lines.slice(linesBefore).filter(({ level }) => level === 'error' || level === 'warn')).toEqual([])
})
