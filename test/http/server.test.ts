import { once } from 'node:events'
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
