import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { startForwardProxy } from '../../support/network/forward-proxy.ts'
import { listen } from '../../support/network/listen.ts'
import { closeOpened, connect, goodBody, openRaw, until } from '../carrier/carrier-double.ts'
import { certificate, certificateKey } from './self-signed.ts'
import { openSender } from './sender-world.ts'

afterEach(closeOpened)

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'
type OnRequest = (socket: Socket, ofConnection: number, connection: number) => void

/** Records the requests. Calls `onRequest` for each request, with its number on its connection and the connection's number. */
function counting(onRequest: OnRequest) {
  const requests: string[] = []
  let connections = 0
  return {
    requests,
    onSocket(socket: Socket) {
      connections += 1
      const connection = connections
      let ofConnection = 0
      socket.on('error', () => undefined)
      socket.on('data', (data) => {
        if (!/^(POST|GET) /.test(String(data))) return
        ofConnection += 1
        requests.push(String(data))
        onRequest(socket, ofConnection, connection)
      })
    },
  }
}

async function openTlsRaw(onSocket: (socket: Socket) => void): Promise<string> {
  const server = createTlsServer({ cert: certificate, key: certificateKey }, onSocket)
  onTestFinished(() => void server.close())
  return `https://localhost:${await listen(server)}`
}

/** Waits until the client has put a connection back into its pool. It does so a turn of the event loop after the answer. */
async function putBack(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await setImmediate()
}

const answer = (socket: Socket) => void socket.write(OK)
const reset = (socket: Socket) => void socket.resetAndDestroy()
const close = (socket: Socket) => void socket.end()

describe('a post on a reused connection', () => {
  test.each([
    ['reset', reset],
    ['closed', close],
  ])('is repeated once on a new connection if the reused one is %s before any byte of an answer', async (_, lose) => {
    const { requests, onSocket } = counting((socket, ofConnection) => (ofConnection === 1 ? answer(socket) : lose(socket)))
    const url = await openRaw(onSocket)
    await using world = openSender()
    expect(await world.post(url)).toMatchObject({ kind: 'accepted' })
    await putBack()
    expect(await world.post(url)).toMatchObject({ kind: 'accepted' })
    expect(requests).toHaveLength(3)
    expect(requests[2]).toBe(requests[1])
  })

  test.each(['directly', 'through a proxy'])(
    'is repeated once under TLS %s, because the close of a TLS session is no answer',
    async (way) => {
      const { requests, onSocket } = counting((socket, ofConnection) => (ofConnection === 1 ? answer(socket) : close(socket)))
      const url = await openTlsRaw(onSocket)
      const proxy = way === 'directly' ? {} : { proxy: (await startForwardProxy()).url }
      await using world = openSender()
      const post = () => world.sender.send({ url, headers: {}, body: Buffer.from('{}'), route: { ca: certificate, ...proxy } })
      expect(await post()).toMatchObject({ kind: 'accepted' })
      await putBack()
      expect(await post()).toMatchObject({ kind: 'accepted' })
      expect(requests).toHaveLength(3)
    },
  )

  test('fails if the repeat is lost as well', async () => {
    const { requests, onSocket } = counting((socket, ofConnection, connection) =>
      ofConnection === 1 && connection === 1 ? answer(socket) : reset(socket),
    )
    const url = await openRaw(onSocket)
    await using world = openSender()
    await world.post(url)
    await putBack()
    expect(await world.post(url)).toMatchObject({ kind: 'failed', reason: 'reset' })
    expect(requests).toHaveLength(3)
  })

  test('fails if part of an answer has come', async () => {
    const { requests, onSocket } = counting((socket, ofConnection) => {
      if (ofConnection === 1) return answer(socket)
      return void socket.write('HTTP/1.1 2', () => socket.end())
    })
    const url = await openRaw(onSocket)
    await using world = openSender()
    await world.post(url)
    await putBack()
    expect(await world.post(url)).toMatchObject({ kind: 'failed', reason: 'reset' })
    expect(requests).toHaveLength(2)
  })

  test('fails at its deadline, without a repeat, if nothing comes', async () => {
    const { requests, onSocket } = counting((socket, ofConnection) => void (ofConnection === 1 && answer(socket)))
    const url = await openRaw(onSocket)
    const due: (() => void)[] = []
    const startTimer = (_delayMs: number, run: () => void) => {
      due.push(run)
      return () => undefined
    }
    await using world = openSender({}, { startTimer })
    await world.post(url)
    await putBack()
    due.length = 0
    const posted = world.post(url)
    await until(() => requests.length === 2)
    for (const run of due) run()
    expect(await posted).toMatchObject({ kind: 'failed', reason: 'timeout' })
    expect(requests).toHaveLength(2)
  })

  test('is not repeated if posts are forbidden meanwhile', async () => {
    let mayPost = true
    const { requests, onSocket } = counting((socket, ofConnection) => {
      if (ofConnection === 1) return answer(socket)
      mayPost = false
      return reset(socket)
    })
    const url = await openRaw(onSocket)
    await using world = openSender({}, { mayPost: () => mayPost })
    await world.post(url)
    await putBack()
    expect(await world.post(url)).toMatchObject({ kind: 'failed', reason: 'interrupted' })
    expect(requests).toHaveLength(2)
  })
})

test('a post is not repeated if its connection is new and is reset', async () => {
  const { requests, onSocket } = counting(reset)
  const url = await openRaw(onSocket)
  await using world = openSender()
  expect(await world.post(url)).toMatchObject({ kind: 'failed', reason: 'reset' })
  expect(requests).toHaveLength(1)
})

test('a call is repeated, and counts twice, if the carrier resets its reused connection', async () => {
  const json = (body: string) =>
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  // The first connection answers with the token, and is reset when the call for the parcel comes.
  const { requests, onSocket } = counting((socket, ofConnection) => {
    const isToken = requests.at(-1)?.startsWith('POST ') === true
    if (isToken) return void socket.write(json('{"token":"t"}'))
    return ofConnection === 1 ? void socket.write(json(goodBody)) : reset(socket)
  })
  const { carrier, fetchAll } = connect(await openRaw(onSocket), { concurrency: 1 })
  expect(await fetchAll()).toMatchObject({ kind: 'found' })
  expect(requests.map((request) => request.slice(0, 4))).toEqual(['POST', 'GET ', 'GET '])
  expect(carrier.state().budget.callsToday).toBe(3)
})
