import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import { Webhook } from 'standardwebhooks'
import { afterEach, describe, expect, test } from 'vitest'
import { ANSWER_KEPT_BYTES } from '../../../src/core/domain/delivery/delivery.ts'
import { createDeliverySigner } from '../../../src/core/domain/delivery/delivery-request.ts'
import { systemCode } from '../../../src/core/domain/errors.ts'
import { definedHmac, opensslHmac } from '../../support/delivery/independent-hmac.ts'
import { pushBody } from '../../support/history/builders.ts'
import { byForm, SHORT } from '../../support/runner/long-form.ts'
import { lacks } from '../../support/runner/system-tools.ts'
import { closeOpened, openHttp, openRaw, openTls, refusingUrl, until } from '../carrier/carrier-double.ts'
import { certificate } from './self-signed.ts'
import { keptText, LOOPBACK, openSender } from './sender-world.ts'

afterEach(closeOpened)

/** Answers every request with these bytes after its body has arrived, and then calls `then`. */
const openAnswering = (bytes: string, then: (socket: Socket) => void = () => undefined) =>
  openRaw((socket) => {
    socket.on('data', (data) => {
      if (!data.includes('"Created"')) return
      socket.write(bytes)
      then(socket)
    })
  })
const openStatus = (status: number, headers: Readonly<Record<string, string>> = {}) =>
  openHttp((_request, response) => void response.writeHead(status, headers).end())

describe('O1: an answer', () => {
  test.each([200, 201, 202, 204, 299])('with status %i counts as accepted', async (status) => {
    await using world = openSender()
    expect(await world.post(await openStatus(status))).toMatchObject({ kind: 'accepted', status })
  })

  test('is kept with its first bytes and its duration', async () => {
    const text = 'é'.repeat(3_000)
    await using world = openSender()
    const result = await world.post(await openHttp((_request, response) => void response.end(text)))
    expect(keptText(result)).toBe(text.slice(0, ANSWER_KEPT_BYTES / 2))
    expect(result.durationMs).toBeGreaterThan(0)
    expect(result.durationMs).toBeLessThan(5_000)
  })

  test('names the address that it came from, and so does a refused connection', async () => {
    await using world = openSender()
    expect(await world.post(await openStatus(204))).toMatchObject({ kind: 'accepted', address: '127.0.0.1' })
    expect(await world.post(await openStatus(500))).toMatchObject({ kind: 'rejected', address: '127.0.0.1' })
    expect(await world.post(await refusingUrl())).toMatchObject({ reason: 'connection_refused', address: '127.0.0.1' })
    expect(await world.post('http://nowhere.invalid/')).not.toHaveProperty('address')
  })

  test('counts only if it is final, and provisional responses before it are skipped', async () => {
    const url = await openAnswering(`${'HTTP/1.1 102 Processing\r\n\r\n'.repeat(20)}HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n`)
    await using world = openSender()
    expect(await world.post(url)).toMatchObject({ kind: 'accepted', status: 201 })
  })

  test('that consists only of provisional responses counts as no answer at the deadline', async () => {
    const url = await openAnswering('', (socket) => {
      const storm = (): void => {
        while (!socket.destroyed && socket.write('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'));
      }
      socket.on('drain', storm)
      storm()
    })
    await using world = openSender({}, { timeoutMs: 60_000 })
    expect(await world.post(url)).toMatchObject({ kind: 'failed', reason: 'bad_response', detail: 'ONLY_PROVISIONAL' })
  })

  test.each([
    ['cut off', 'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\nthanks', (socket: Socket) => void socket.end()],
    [
      'reset',
      'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\nthanks',
      (socket: Socket) => void setImmediate(() => socket.resetAndDestroy()),
    ],
    ['chunked badly', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nthanks\r\nzz\r\n', () => undefined],
  ])('with a body that is %s is still accepted, because its status was complete', async (_, bytes, then) => {
    await using world = openSender()
    expect(await world.post(await openAnswering(bytes, then))).toMatchObject({ kind: 'accepted', status: 200 })
  })

  test.each(['HTTP/1.1 2', 'HTTP/1.1 200 OK\r\n', 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n'])(
    'that is cut off within %j counts as no answer',
    async (bytes) => {
      await using world = openSender()
      expect(await world.post(await openAnswering(bytes, (socket) => void socket.end()))).toMatchObject({ kind: 'failed', reason: 'reset' })
    },
  )

  test('with an endless body is read up to 64 KB', async () => {
    let written = 0
    let ended = false
    const url = await openHttp((_request, response) => {
      const chunk = Buffer.alloc(16_384, 'x')
      const more = (): void => {
        while (!response.destroyed) {
          written += chunk.length
          if (!response.write(chunk)) return
        }
      }
      response.on('drain', more).on('close', () => {
        ended = true
      })
      more()
    })
    await using world = openSender()
    const result = await world.post(url)
    expect(result).toMatchObject({ kind: 'accepted', status: 200 })
    expect(result.answerStart).toHaveLength(ANSWER_KEPT_BYTES)
    await until(() => ended)
    // The sender stops at 64 KB, but the buffers of two sockets hold more.
    expect(written).toBeLessThan(20_000_000)
  })

  test('with an endless body holds its slot only until the deadline', async () => {
    const url = await openAnswering('HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\nthanks')
    await using world = openSender({}, { timeoutMs: 300 })
    const result = await world.post(url)
    expect(result).toMatchObject({ kind: 'accepted', status: 200 })
    expect(keptText(result)).toBe('thanks')
    expect(result.durationMs).toBeLessThan(2_000)
  })
})

describe('O2: a redirect', () => {
  test.each([301, 302, 303, 307, 308])('with status %i counts as rejected, and nothing is sent to its target', async (status) => {
    let elsewhere = 0
    const target = await openHttp((_request, response) => {
      elsewhere += 1
      response.end()
    })
    await using world = openSender()
    expect(await world.post(await openStatus(status, { location: target }))).toMatchObject({ kind: 'rejected', status, retryAfterMs: null })
    expect(elsewhere).toBe(0)
  })
})

const OK = 'HTTP/1.1 200 OK\r\n'
const TWO_LENGTHS = 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'

describe('O3: a refusal', () => {
  test.each([400, 404, 410, 422, 500])('with status %i counts as rejected', async (status) => {
    await using world = openSender()
    expect(await world.post(await openStatus(status))).toMatchObject({ kind: 'rejected', status, retryAfterMs: null })
  })

  test.each([
    [429, '5', 5_000],
    [503, '0', 1_000],
    [503, '1000000000', 3_600_000],
    [429, 'soon', null],
    [503, '-1', null],
  ])('of %i with Retry-After: %s asks for %s ms', async (status, header, retryAfterMs) => {
    await using world = openSender()
    expect(await world.post(await openStatus(status, { 'retry-after': header }))).toMatchObject({ kind: 'rejected', status, retryAfterMs })
  })

  test('gives its reason to the operator', async () => {
    await using world = openSender()
    const result = await world.post(await openHttp((_request, response) => void response.writeHead(422).end('no such parcel')))
    expect(keptText(result)).toBe('no such parcel')
  })
})

describe('O4: no answer', () => {
  const resets = () => openAnswering('', (socket) => void socket.resetAndDestroy())
  const drips = (bytes: string) =>
    openAnswering('', (socket) => {
      let sent = 0
      const timer = setInterval(() => socket.write(bytes[sent++] ?? 'x'), 20)
      socket.on('close', () => clearInterval(timer))
    })

  test.each([
    ['a refused connection', refusingUrl, 'connection_refused', 'ECONNREFUSED'],
    ['a reset', resets, 'reset', 'ECONNRESET'],
    ['a close without an answer', () => openAnswering('', (socket) => void socket.end()), 'reset', 'UND_ERR_SOCKET'],
    [
      'an answer with two equal lengths',
      () => openAnswering(`${OK}content-length: 2\r\ncontent-length: 2\r\n\r\nok`),
      'bad_response',
      TWO_LENGTHS,
    ],
    [
      'an answer with two lengths',
      () => openAnswering(`${OK}content-length: 2\r\ncontent-length: 3\r\n\r\nok`),
      'bad_response',
      TWO_LENGTHS,
    ],
    [
      'a length before an encoding',
      () => openAnswering(`${OK}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n`),
      'bad_response',
      TWO_LENGTHS,
    ],
    [
      'a length after an encoding',
      () => openAnswering(`${OK}transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n`),
      'bad_response',
      'NO_HTTP',
    ],
    ['an answer that is not HTTP', () => openAnswering('SSH-2.0-x\r\n'), 'bad_response', 'NO_HTTP'],
    [
      'a switch of protocols',
      () => openAnswering('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
      'reset',
      'UND_ERR_SOCKET',
    ],
    ['endless headers', () => openAnswering(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(20_000)}`), 'bad_response', 'UND_ERR_HEADERS_OVERFLOW'],
  ] as const)('%s makes the result a failure with its reason, and throws nothing', async (_, open, reason, detail) => {
    await using world = openSender()
    expect(await world.post(await open())).toMatchObject({ kind: 'failed', reason, detail, answerStart: new Uint8Array() })
  })

  test.each([
    ['never answers', () => openRaw((socket) => void socket.resume())],
    ['drips its headers', () => drips(`HTTP/1.1 200 OK\r\nx-slow: ${'x'.repeat(500)}\r\n\r\n`)],
  ])('a post to a server that %s ends at the deadline for the whole exchange', async (_, open) => {
    await using world = openSender({}, { timeoutMs: 400 })
    const result = await world.post(await open())
    expect(result).toMatchObject({ kind: 'failed', reason: 'timeout' })
    expect(result.durationMs).toBeGreaterThanOrEqual(390)
    expect(result.durationMs).toBeLessThan(2_000)
  })

  test.each([
    ['ENOTFOUND', 'dns'],
    ['EAI_AGAIN', 'dns'],
  ])('a name that does not resolve (%s) is a failure, and throws nothing', async (code, reason) => {
    await using world = openSender({ lookup: () => Promise.reject(Object.assign(new Error('no'), { code })) })
    expect(await world.post('http://shop.internal/')).toMatchObject({ kind: 'failed', reason, detail: code })
  })

  test('a resolver that never answers ends at the deadline', async () => {
    const timers: (() => void)[] = []
    const startTimer = (_delayMs: number, run: () => void) => {
      timers.push(run)
      return () => undefined
    }
    let isAsked = false
    const lookup = (): Promise<never> => {
      isAsked = true
      return new Promise(() => undefined)
    }
    await using world = openSender({ lookup }, { timeoutMs: 60_000, startTimer })
    const result = world.post('http://shop.internal/')
    await until(() => isAsked)
    for (const run of timers) run()
    expect(await result).toMatchObject({ kind: 'failed', reason: 'timeout', detail: 'DEADLINE' })
  })

  test('a hundred hanging posts, to one address and to many, do not delay another post', async () => {
    const blackHole = await openRaw((socket) => void socket.resume())
    const healthy = await openStatus(200)
    await using world = openSender({ lookup: () => new Promise(() => undefined) }, { timeoutMs: 60_000 })
    const hanging = Array.from({ length: 100 }, (_, at) => world.post(at % 2 === 0 ? blackHole : `http://h${at}.internal/`))
    const result = await world.post(healthy)
    expect(result).toMatchObject({ kind: 'accepted' })
    expect(result.durationMs).toBeLessThan(2_000)
    await world.sender.close()
    expect(new Set((await Promise.all(hanging)).map((one) => (one.kind === 'failed' ? one.reason : one.kind)))).toEqual(
      new Set(['interrupted']),
    )
  })

  test('a post after the sender is closed is interrupted without a request', async () => {
    let requests = 0
    const url = await openHttp((_request, response) => {
      requests += 1
      response.end()
    })
    const world = openSender()
    await world.sender.close()
    expect(await world.post(url)).toMatchObject({ kind: 'failed', reason: 'interrupted' })
    expect(requests).toBe(0)
  })
})

describe('O8: a request that arrives', () => {
  test('has the bytes that were sent, and independent verifiers accept its signatures', async () => {
    const key = randomBytes(32).toString('base64')
    const bodies = [
      Buffer.concat([Buffer.from('\r\n\t '), pushBody({ location: 'Örebro' }), Buffer.from('\n ')]),
      randomBytes(200_000),
      Buffer.alloc(0),
    ]
    const arrived: { headers: IncomingHttpHeaders; body: Buffer }[] = []
    const url = await openHttp((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        arrived.push({ headers: request.headers, body: Buffer.concat(chunks) })
        response.end()
      })
    })
    await using world = openSender()
    const signer = createDeliverySigner({ current: key }, 'standard-webhooks', { userAgent: 'parcel-relay/test' })
    for (const [at, body] of bodies.entries()) {
      const headers = signer.headers({ webhookId: `evt_${at}`, sequence: at + 1, previousSequence: at, body }, Date.now())
      expect(await world.sender.send({ url, headers, body })).toMatchObject({ kind: 'accepted' })
    }
    expect(arrived.map(({ body }) => body.equals(bodies[arrived.findIndex((one) => one.body === body)] ?? Buffer.from('?')))).toEqual([
      true,
      true,
      true,
    ])
    for (const { headers, body } of arrived) {
      expect(headers['x-service-hmac-sha256']).toBe(definedHmac(body, key))
      if (!lacks('openssl')) expect(headers['x-service-hmac-sha256']).toBe(opensslHmac(body, key))
      expect(headers).toMatchObject({ 'content-type': 'application/json', 'content-length': String(body.length) })
      expect(headers['content-encoding']).toBeUndefined()
    }
    const [event] = arrived
    const flat = Object.fromEntries(Object.entries(event?.headers ?? {}).map(([name, value]) => [name, String(value)]))
    expect(new Webhook(key).verify(event?.body ?? '', flat)).toMatchObject({ location: 'Örebro' })
  })
})

setFlagsFromString('--expose-gc')
const isCollector = (value: unknown): value is () => void => typeof value === 'function'
const collectGarbage: unknown = runInNewContext('gc')

function memoryHeld() {
  if (isCollector(collectGarbage)) collectGarbage()
  const { heapUsed, external, rss } = process.memoryUsage()
  const sockets = process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP') || name.startsWith('TLS')).length
  return { reachable: heapUsed + external, rss, sockets }
}

describe('O12: an invalid certificate', () => {
  test('is a failure each time, and connections and memory do not pile up', async () => {
    const url = await openTls((_request, response) => void response.end())
    await using world = openSender({ allowNetworks: LOOPBACK })
    const deliver = async (times: number): Promise<void> => {
      for (let nth = 0; nth < times; nth++) {
        const result = await world.post(url)
        if (result.kind !== 'failed' || result.reason !== 'certificate_self_signed') throw new Error(JSON.stringify(result))
      }
    }
    // The first posts also compile code, which takes memory once.
    await deliver(byForm(50, 1000))
    const before = memoryHeld()
    await deliver(byForm(50, 600))
    const after = memoryHeld()
    // Measure the reachable memory, because the process's memory settles only after thousands of posts. A leak of 1 kB a post would show.
    if (!SHORT) expect(after.reachable - before.reachable).toBeLessThan(600_000)
    expect(after.sockets - before.sockets).toBeLessThan(10)
    expect(after.rss - before.rss).toBeLessThan(100_000_000)
    expect(await world.post(url)).toMatchObject({ reason: 'certificate_self_signed', detail: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
    expect(await world.post(url, certificate)).toMatchObject({ kind: 'accepted' })
  })
})

describe('O13: a kept-alive connection', () => {
  test('is used again', async () => {
    const ports = new Set<number | undefined>()
    const url = await openHttp((request, response) => {
      ports.add(request.socket.remotePort)
      response.end('thanks')
    })
    await using world = openSender()
    for (let nth = 0; nth < 20; nth++) expect(await world.post(url)).toMatchObject({ kind: 'accepted' })
    // A connection becomes free a moment after its answer was read, so the next post may open another connection.
    expect(ports.size).toBeLessThanOrEqual(3)
  })

  test.each([
    ['a whole answer', 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'],
    ['half an answer', 'HTTP/1.1 200 OK\r\n'],
    ['a few bytes', 'xxxx'],
  ])('does not mistake %s after an answer for the answer to the next post', async (_, extra) => {
    let count = 0
    const url = await openAnswering('', (socket) => {
      count += 1
      const status = count % 2 === 1 ? '200 OK' : '422 Unprocessable Content'
      socket.write(`HTTP/1.1 ${status}\r\ncontent-length: 2\r\n\r\nok${count % 2 === 1 ? extra : ''}`)
    })
    await using world = openSender()
    for (let nth = 0; nth < 20; nth++) {
      expect.soft(await world.post(url), `round ${nth}`).toMatchObject({ kind: 'accepted', status: 200 })
      expect.soft(await world.post(url), `round ${nth}`).toMatchObject({ kind: 'rejected', status: 422 })
    }
  })
})

/** Opens an endpoint that answers every post or none, and records how its connections ended. */
async function openWatched({ isTls, isAnswering }: { readonly isTls: boolean; readonly isAnswering: boolean }) {
  const ends: string[] = []
  let posts = 0
  const url = await (isTls ? openTls : openHttp)((request, response) => {
    posts += 1
    let end = 'closed'
    request.socket.on('error', (error) => {
      end = systemCode(error) ?? error.message
    })
    request.socket.on('close', () => void ends.push(end))
    request.resume()
    if (isAnswering) response.end()
  })
  return { url, ends, posts: () => posts }
}

describe.each([['http', false] as const, ['https', true] as const])('a connection by %s', (_, isTls) => {
  test('is reset if its post is interrupted, so that the rest of the body is not sent', async () => {
    const { url, ends, posts } = await openWatched({ isTls, isAnswering: false })
    await using world = openSender()
    const result = world.post(url, certificate)
    await until(() => posts() === 1)
    // Wait until the sender has read the whole handshake, because a socket closed with unread bytes is always reset.
    await setTimeout(100)
    await world.sender.close()
    expect(await result).toMatchObject({ kind: 'failed', reason: 'interrupted', detail: 'CLOSED' })
    await until(() => ends.length === 1)
    expect(ends).toEqual(['ECONNRESET'])
  })

  test('is reset if its post times out, and the next post uses another', async () => {
    const { url, ends } = await openWatched({ isTls, isAnswering: false })
    await using world = openSender({}, { timeoutMs: 500 })
    for (let nth = 0; nth < 2; nth++)
      expect(await world.post(url, certificate)).toMatchObject({ kind: 'failed', reason: 'timeout', detail: 'DEADLINE' })
    await until(() => ends.length === 2)
    expect(ends).toEqual(['ECONNRESET', 'ECONNRESET'])
  })

  test('is closed and not reset if no post is under way', async () => {
    const { url, ends } = await openWatched({ isTls, isAnswering: true })
    await using world = openSender()
    expect(await world.post(url, certificate)).toMatchObject({ kind: 'accepted' })
    await world.sender.close()
    await until(() => ends.length === 1)
    expect(ends).toEqual(['closed'])
  })
})

describe('a connection that ends after its answer', () => {
  test('is replaced for the next post, even if no other connection to the host is open', async () => {
    const url = await openHttp((_request, response) => void response.setHeader('connection', 'close').end())
    await using world = openSender()
    for (let nth = 0; nth < 3; nth++) {
      expect(await world.post(url)).toMatchObject({ kind: 'accepted' })
      await until(() => !process.getActiveResourcesInfo().includes('TCPSocketWrap'))
    }
  })
})

describe('O14: a compressed answer', () => {
  test('of 300 MB is not inflated, and only its first bytes are kept', async () => {
    // Several gzip members in a row are one valid gzip stream, so few bytes inflate to 300 MB.
    const member = gzipSync(Buffer.alloc(1_000_000))
    const bomb = Buffer.concat(Array.from({ length: 300 }, () => member))
    const url = await openHttp((_request, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
    await using world = openSender()
    const before = process.memoryUsage().rss
    const result = await world.post(url)
    expect(result).toMatchObject({ kind: 'accepted', status: 200 })
    expect(Buffer.from(result.answerStart).equals(bomb.subarray(0, ANSWER_KEPT_BYTES))).toBe(true)
    expect(process.memoryUsage().rss - before).toBeLessThan(50_000_000)
  })
})

test('no post is sent on a connection that opens after posts were forbidden', async () => {
  const received: number[] = []
  const url = await openHttp((_request, response) => {
    received.push(response.statusCode)
    response.writeHead(200).end()
  })
  let mayPost = true
  await using world = openSender({}, { mayPost: () => mayPost })
  const late = world.post(url)
  mayPost = false
  expect(await late).toMatchObject({ kind: 'failed', reason: 'interrupted' })
  expect(await world.post(url)).toMatchObject({ kind: 'failed', reason: 'interrupted' })
  expect(received).toEqual([])
  mayPost = true
  expect(await world.post(url)).toMatchObject({ kind: 'accepted' })
  expect(received).toHaveLength(1)
})
