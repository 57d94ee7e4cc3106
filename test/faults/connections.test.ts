import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { raw, start } from '../core/http/harness.ts'
import { pushBody } from '../support/history/builders.ts'
import { eventually, rawRequest, signed, startWorld, type World } from './world.ts'

const KNOWN = '90100001'

let world: World
beforeAll(async () => {
  world = await startWorld()
  expect((await world.push(pushBody({ trackingIds: [KNOWN] }))).status).toBe(200)
})
afterAll(() => world.stop())

const header = (value: string) => `x-service-hmac-sha256: ${value}`
const noTrouble = () => expect(world.lines.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([])

/** Sends everything and reads nothing. Resolves when the last byte has been sent. */
function sendOnly(port: number, parts: readonly (string | Uint8Array)[]): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(Buffer.concat(parts.map((part) => Buffer.from(part))), () => resolve(socket))
    })
    socket.pause().on('error', reject)
  })
}

describe('H5: a client that leaves after it has sent its body, without reading the answer', () => {
  const bodyOf = (at: number, id: string) => pushBody({ trackingIds: [id], location: `left ${at}` })
  const requestOf = (body: Buffer) => rawRequest('POST', [header(signed(body)), `Content-Length: ${body.length}`], body)

  test('has its push recorded once, and gets a 200 when it sends the push again', async () => {
    const bodies = Array.from({ length: 20 }, (_, at) => bodyOf(at, '90100002'))
    for (const body of bodies) {
      const socket = await sendOnly(world.publicPort, requestOf(body))
      await eventually(async () => (await world.inbox.rowsOf(body)).length === 1)
      socket.resetAndDestroy()
    }
    for (const body of bodies) expect((await world.push(body)).status).toBe(200)
    for (const body of bodies) expect((await world.inbox.rowOf(body)).state).toBe('recorded')
    expect((await world.all('90100002')).statuses).toHaveLength(bodies.length)
    noTrouble()
  })

  test('has its push recorded once if it leaves at once and then sends the push again', async () => {
    const bodies = Array.from({ length: 40 }, (_, at) => bodyOf(at, '90100003'))
    await Promise.all(bodies.map(async (body) => (await sendOnly(world.publicPort, requestOf(body))).resetAndDestroy()))
    for (const body of bodies) expect((await world.push(body)).status).toBe(200)
    for (const body of bodies) expect((await world.inbox.rowOf(body)).state).toBe('recorded')
    noTrouble()
  })
})

const MALFORMED_BODY = pushBody({ trackingIds: ['90100004'] })
const length = `Content-Length: ${MALFORMED_BODY.length}`
const CHUNKED = 'Transfer-Encoding: chunked'
const text = MALFORMED_BODY.toString()
const whole = `${MALFORMED_BODY.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`
/** Headers and bodies that two servers might read as different requests. */
const MALFORMED: Readonly<Record<string, readonly [headers: readonly string[], body: string]>> = {
  'a length and a transfer coding': [[length, CHUNKED], whole],
  'a transfer coding and a length': [[CHUNKED, length], whole],
  'two lengths': [[length, 'Content-Length: 5'], text],
  'the same length twice': [[length, length], text],
  'a list of lengths': [[`${length}, ${MALFORMED_BODY.length}`], text],
  'a length with a sign': [[`Content-Length: +${MALFORMED_BODY.length}`], text],
  'a hexadecimal length': [['Content-Length: 0x2'], '{}'],
  'a negative length': [['Content-Length: -1'], ''],
  'a length beyond all numbers': [['Content-Length: 99999999999999999999'], text],
  'an unknown transfer coding': [['Transfer-Encoding: xchunked'], whole],
  'the transfer coding identity': [['Transfer-Encoding: identity'], text],
  'chunks twice over': [['Transfer-Encoding: chunked, chunked'], whole],
  'chunks within gzip': [['Transfer-Encoding: chunked, gzip'], whole],
  'a folded header': [['X-Folded: one', ' two', length], text],
  'a blank before the colon': [[`Content-Length : ${MALFORMED_BODY.length}`], text],
  'a header without a name': [[': empty', length], text],
  'a header without a colon': [['nonsense', length], text],
  'NUL in a header': [['X-Nul: a\0b', length], text],
  'a bare CR in a header': [['X-Cr: a\rb', length], text],
  'a bare LF after a header': [[`X-Lf: a\n${length}`], text],
  'a chunk size that is no number': [[CHUNKED], `zz\r\n${text}\r\n0\r\n\r\n`],
  'a chunk size with a sign': [[CHUNKED], `+${whole}`],
  'a chunk size beyond all numbers': [[CHUNKED], `fffffffffffffffff\r\n${text}\r\n0\r\n\r\n`],
  'chunks ended by a bare LF': [[CHUNKED], whole.replaceAll('\r\n', '\n')],
  'a chunk longer than it says': [[CHUNKED], `2\r\n${text}\r\n0\r\n\r\n`],
}

test.each(Object.keys(MALFORMED))('H6: %s gets a 400 and a closed connection, and nothing is stored', async (name) => {
  const [headers, body] = MALFORMED[name] ?? [[], '']
  const rows = await world.inbox.count()
  // A second request follows. A server that reads the first request wrongly would accept the second one.
  const smuggled = pushBody({ trackingIds: ['90100005'] })
  const behind = rawRequest('POST', [header(signed(smuggled)), `Content-Length: ${smuggled.length}`], smuggled)
  const answer = await raw(world.publicPort, [...rawRequest('POST', [...headers, header(signed(MALFORMED_BODY))], body), ...behind])
  expect([answer.status, answer.closed]).toEqual([400, true])
  expect(answer.text.match(/HTTP\/1\.1 /g)).toHaveLength(1)
  expect([await world.inbox.count(), await world.inbox.rowsOf(smuggled)]).toEqual([rows, []])
})

test.each(['an evil one', '<script>evil()</script>', '', '[::1', 'x@evil.example', 'evil.example:99999', 'evil.example/..', '\u00e9vil'])(
  'H9: a Host of "%s" changes nothing, and is in no answer',
  async (host) => {
    const get = (target: string) =>
      `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nAuthorization: Bearer ${world.token}\r\n\r\n`
    for (const target of [`/v1/status/${KNOWN}/all`, '/v1/status/!/all', '/nowhere', '/relay/events', '/healthz']) {
      const [asHost, asUsual] = [
        await raw(world.internalPort, get(target)),
        await raw(world.internalPort, get(target).replace(`Host: ${host}\r\n`, 'Host: relay\r\n')),
      ]
      expect([target, [asUsual.status, 400].includes(asHost.status)]).toEqual([target, true])
      expect(asHost.text).not.toMatch(/evil|\r\nlocation:/i)
    }
    const body = pushBody({ trackingIds: [KNOWN], location: `host ${host.length}` })
    const [head, sent] = rawRequest('POST', [header(signed(body)), `Content-Length: ${body.length}`, 'Connection: close'], body)
    const answer = await raw(world.publicPort, [Buffer.from(head.replace('Host: relay', `Host: ${host}`), 'latin1'), sent])
    expect([200, 400]).toContain(answer.status)
    expect(await world.inbox.rowsOf(body)).toHaveLength(answer.status === 200 ? 1 : 0)
  },
)

test('H10: a forged forwarded address has no effect, and is in no answer or log', async () => {
  const strict = await startWorld({ limits: { failuresPerMinute: 3 } })
  try {
    const spoofed = (at: number) => ({
      'x-forwarded-for': `203.0.113.${at}`,
      'x-real-ip': `203.0.113.${at}`,
      forwarded: `for=203.0.113.${at};host=evil.example;proto=https`,
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'https',
    })
    const statuses: number[] = []
    for (let at = 0; at < 6; at++) {
      const answer = await strict.push('{}', { 'x-service-hmac-sha256': 'wrong', ...spoofed(at) })
      statuses.push(answer.status)
      expect(`${await answer.text()} ${JSON.stringify([...answer.headers])}`).not.toContain('evil')
    }
    // All requests count for the real address, so the fourth exceeds the limit.
    expect(statuses.slice(0, 3)).toEqual([401, 401, 401])
    expect(statuses.slice(3)).toEqual([429, 429, 429])
    expect(JSON.stringify(strict.lines)).not.toMatch(/evil|203\.0\.113/)
  } finally {
    await strict.stop()
  }
})

test('H16: an idle keep-alive connection outlasts the timeout of a silent connection', async () => {
  const server = await start((_req, res) => void res.end('here'), { timeouts: { inactiveMs: 200, keepAliveMs: 2000 } })
  const request = 'GET / HTTP/1.1\r\nHost: relay\r\n\r\n'
  const socket = connect(server.port, '127.0.0.1')
  let said = ''
  socket.on('data', (chunk) => {
    said += chunk.toString()
  })
  const answers = () => said.split('HTTP/1.1 200').length - 1
  socket.write(request)
  await eventually(async () => answers() === 1)
  // A connection that never sends anything is closed first, although it is opened later.
  await once(connect(server.port, '127.0.0.1').resume(), 'close')
  socket.write(request)
  await eventually(async () => answers() === 2)
  socket.destroy()
})

test('H16: an answer promises to keep an idle connection for longer than a proxy does (60 s)', async () => {
  for (const [port, target] of [
    [world.publicPort, '/healthz'],
    [world.internalPort, `/v1/status/${KNOWN}/latest`],
  ] as const) {
    const answer = await raw(port, `GET ${target} HTTP/1.1\r\nHost: relay\r\nAuthorization: Bearer ${world.token}\r\n\r\n`, {
      until: (said) => said.includes('\r\n\r\n'),
    })
    const seconds = Number(/\r\nKeep-Alive: timeout=(\d+)/i.exec(answer.text)?.[1])
    expect(seconds).toBeGreaterThanOrEqual(65)
    expect(seconds).toBeLessThanOrEqual(75)
  }
})
