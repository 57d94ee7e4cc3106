import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { start } from './harness.ts'

const WAITING = 40

test('X1: what has connected before the stop is answered, however many were not taken yet', async () => {
  const server = await start((_req, res) => res.end('taken'), {})
  // With this thread busy meanwhile, the system completes the connections and nobody takes them.
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
/** Of requests on one connection that came without waiting for answers. */
const AT_ONCE = 8

/** A server that answers when it is told to, and a connection on which so many requests came at once. */
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

test('R7: of many requests that come at once on a connection eight are looked at, each further one when an answer was taken', async () => {
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

test('R7: what waits behind them is not looked at any more when the client has left', async () => {
  const { server, socket, held } = await startHeld(40)
  socket.resetAndDestroy()
  const [first] = held
  if (first?.closed === false) await once(first, 'close')
  for (const res of held) res.end('too late')
  // One more round trip: whatever the server still had to do of the first connection came before it.
  const other = connect(server.port, server.host, () => void other.write(GET))
  await expect.poll(() => held.length).toBe(AT_ONCE + 1)
  expect(held).toHaveLength(AT_ONCE + 1)
  other.destroy()
})
