import { once } from 'node:events'
import { createServer, request, type ServerResponse } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { leavingOf } from '../../../src/http/server/leaving.ts'

/** A request that is under way, with the server's side of its answer. */
async function ask() {
  const asked = Promise.withResolvers<ServerResponse>()
  const server = createServer((_request, answer) => asked.resolve(answer)).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const address = server.address()
  const client = request({ port: typeof address === 'object' ? address?.port : 0, host: '127.0.0.1' }).on('error', () => undefined)
  client.end()
  const answer = await asked.promise
  const leave = async () => {
    const closed = once(answer, 'close')
    client.destroy()
    await closed
  }
  return { answer, leave }
}

test('a client that leaves is noticed', async () => {
  const { answer, leave } = await ask()
  const { signal } = leavingOf(answer)
  expect(signal.aborted).toBe(false)
  await leave()
  expect(signal.aborted).toBe(true)
})

test('a client that has left before anybody listened is noticed too', async () => {
  const { answer, leave } = await ask()
  await leave()
  expect(leavingOf(answer).signal.aborted).toBe(true)
})
