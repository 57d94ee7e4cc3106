import diagnostics from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { start } from '../harness.ts'

const WAITING = 40

test('X1: connections from before a stop are answered, even if they were not accepted yet', async () => {
  const server = await start((_req, res) => res.end('taken'), {})
  // While this thread is busy, the system completes the connections, but the server does not accept them.
  const sockets = Array.from({ length: WAITING }, () => connect(server.port, server.host))
  const answers = sockets.map(async (socket) => {
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.write('GET / HTTP/1.1\r\nHost: relay\r\n\r\n')
    await once(socket, 'close').catch((error: unknown) => chunks.push(Buffer.from(String(error))))
    return Buffer.concat(chunks).toString()
  })
  await nextTurn()
  await server.stop(5000)
  const seen = (await Promise.all(answers)).map((answer) => answer.split('\r\n')[0])
  expect(seen).toEqual(Array(WAITING).fill('HTTP/1.1 200 OK'))
})

const GET = 'GET / HTTP/1.1\r\nHost: relay\r\n\r\n'
/** The server handles this many pipelined requests of a connection at once. */
const AT_ONCE = 8

/** Starts a server that answers when the test says so, and sends it several requests at once on one connection. */
async function startHeld(requests: number) {
  const held: ServerResponse[] = []
  const server = await start((_req, res) => void held.push(res), {})
  const socket = connect(server.port, server.host).on('error', () => undefined)
  let said = ''
  socket.on('data', (chunk) => {
    said += chunk.toString()
  })
  socket.write(GET.repeat(requests))
  await expect.poll(() => held.length).toBe(AT_ONCE)
  return { server, socket, held, said: () => said }
}

test('R7: eight of many requests on a connection are handled, then one more per answer', async () => {
  const { socket, held, said } = await startHeld(40)
  for (let nth = 0; nth < 40; nth++) {
    await expect.poll(() => held.length).toBe(Math.min(nth + AT_ONCE, 40))
    held[nth]?.end(`answer ${nth};`)
  }
  await expect.poll(said).toContain('answer 39;')
  const numbers = [...said().matchAll(/answer (\d+);/g)].map(([, number]) => Number(number))
  expect(numbers).toEqual(Array.from({ length: 40 }, (_, nth) => nth))
  socket.destroy()
})

test('R7: waiting requests of a client that has left are dropped', async () => {
  const { server, socket, held } = await startHeld(40)
  socket.resetAndDestroy()
  // The server does not read from a connection with waiting requests, so it notices the end only when it writes.
  for (const res of held) res.end('too late')
  await expect.poll(() => held.every(({ closed }) => closed)).toBe(true)
  // After another round trip the server has nothing left to do for the first connection.
  const other = connect(server.port, server.host, () => void other.write(GET))
  await expect.poll(() => held.length).toBe(AT_ONCE + 1)
  expect(held).toHaveLength(AT_ONCE + 1)
  other.destroy()
})

test('R7: a client that reads no answer is cut off, and its waiting requests are dropped', async () => {
  let looked = 0
  let isOver = false
  const server = await start(
    (_req, res) => {
      looked++
      res.on('close', () => {
        isOver = true
      })
      // This is more than the buffers of the system hold for the client.
      res.end(Buffer.alloc(64 * 1024 * 1024))
    },
    { timeouts: { inactiveMs: 300 } },
  )
  const socket = connect(server.port, server.host).on('error', () => undefined)
  socket.pause().write(GET.repeat(40))
  await expect.poll(() => isOver).toBe(true)
  expect(looked).toBe(1)
  socket.destroy()
})

test('F9: connections with many requests take turns', async () => {
  const answered = Array.from({ length: 10 }, () => 0)
  let least = 0
  const server = await start((req, res) => {
    const nth = Number(req.url?.slice(1))
    answered[nth] = (answered[nth] ?? 0) + 1
    if (least === 0 && answered[nth] === 100) least = Math.min(...answered)
    res.end()
  }, {})
  const sockets = answered.map(() => connect(server.port, server.host))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  for (const [nth, socket] of sockets.entries()) socket.resume().write(`GET /${nth} HTTP/1.1\r\nHost: relay\r\n\r\n`.repeat(100))
  await expect.poll(() => answered).toEqual(Array(10).fill(100))
  expect(least).toBeGreaterThan(10)
  for (const socket of sockets) socket.destroy()
})

test('F9: over the limit of waiting requests, the connection with the most is closed', async () => {
  const held: ServerResponse[] = []
  const server = await start((_req, res) => void held.push(res), { requestsWaitingMax: 1600 })
  const open = (requests: number) => {
    const one = { isClosed: false, answers: 0 }
    const socket = connect(server.port, server.host, () => void socket.write(GET.repeat(requests)))
    socket.on('data', (chunk) => {
      one.answers += chunk.toString().split('HTTP/1.1 200').length - 1
    })
    socket
      .on('error', () => undefined)
      .on('close', () => {
        one.isClosed = true
      })
    return one
  }
  // The first eight requests of each connection are handled and do not wait.
  const modest = Array.from({ length: 16 }, () => open(98))
  await expect.poll(() => held.length).toBe(16 * AT_ONCE)
  const fuller = open(100)
  await expect.poll(() => held.length).toBe(17 * AT_ONCE)
  const last = open(90)
  await expect.poll(() => fuller.isClosed).toBe(true)
  const answering = setInterval(() => {
    for (const res of held) if (!res.writableEnded) res.end('answered')
  }, 5)
  await expect.poll(() => modest.map(({ answers }) => answers)).toEqual(Array(16).fill(98))
  await expect.poll(() => last.answers).toBe(90)
  clearInterval(answering)
})

test('F9: requests over the share of a connection are not even parsed', async () => {
  let parsed = 0
  const count = () => {
    parsed++
  }
  diagnostics.subscribe('http.server.request.start', count)
  const server = await start((_req, res) => res.end(), { requestsWaitingMax: 160 })
  const socket = connect(server.port, server.host, () => void socket.write(GET.repeat(2000)))
  socket.on('error', () => undefined).resume()
  await once(socket, 'close')
  diagnostics.unsubscribe('http.server.request.start', count)
  expect(parsed).toBeGreaterThan(1)
  expect(parsed).toBeLessThan(20)
})

test('H17: a thousand pipelined requests on a connection are each answered, in order', async () => {
  const server = await start((req, res) => void setImmediate(() => res.end(`answer ${req.url};`)), {})
  const socket = connect(server.port, server.host)
  let said = ''
  socket.on('data', (chunk) => {
    said += chunk.toString()
  })
  // The requests are long, so that fewer of them arrive at once than may wait on one connection.
  const request = (nth: number) => `GET /${nth} HTTP/1.1\r\nHost: relay\r\nCookie: ${'x'.repeat(600)}\r\n\r\n`
  for (let nth = 0; nth < 1000; nth++) socket.write(request(nth))
  await expect.poll(() => said).toContain('answer /999;')
  expect([...said.matchAll(/answer \/(\d+);/g)].map(([, nth]) => Number(nth))).toEqual(Array.from({ length: 1000 }, (_, nth) => nth))
  socket.destroy()
})
