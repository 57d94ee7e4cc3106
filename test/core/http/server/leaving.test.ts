import { once } from 'node:events'
import { createServer, request, type ServerResponse } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { leavingOf } from '../../../../src/core/http/server/authorize.ts'
import { listen } from '../../../support/network/listen.ts'

/** Begins a request, and returns the object with which the server answers it. */
async function ask() {
  const asked = Promise.withResolvers<ServerResponse>()
  const server = createServer((_request, answer) => asked.resolve(answer))
  onTestFinished(() => void server.close())
  const client = request({ port: await listen(server), host: '127.0.0.1' }).on('error', () => undefined)
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

test('a client that left before the listener was added is noticed too', async () => {
  const { answer, leave } = await ask()
  await leave()
  expect(leavingOf(answer).signal.aborted).toBe(true)
})
