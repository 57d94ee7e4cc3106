import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { startForwardProxy } from '../../support/network/forward-proxy.ts'
import { closeOpened, connect, goodBody, json, openTls } from '../carrier/carrier-double.ts'
import { certificate } from './self-signed.ts'
import { openSender } from './sender-world.ts'

afterEach(closeOpened)

type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** Starts a server on each address, all on one port, and counts the requests of each. */
async function startMachines(addresses: readonly string[], handler: Handler) {
  const counts: Record<string, number> = {}
  let port = 0
  for (const address of addresses) {
    counts[address] = 0
    const server = createServer((request, response) => {
      counts[address] = (counts[address] ?? 0) + 1
      handler(request, response)
    })
    server.keepAliveTimeout = 600_000
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    await once(server.listen(port, address), 'listening')
    port = (server.address() as AddressInfo).port
  }
  return { counts, port }
}

const OLD = '127.0.0.1'
const NEW = '127.0.0.2'
const accept: Handler = (_request, response) => void response.end()

/** A receiver that moves from one machine to another: `move` changes the answer of the DNS, `pass` puts the clock forward. */
async function openWorld({ handler = accept, random = 0, allowNetworks = ['127.0.0.0/8'] } = {}) {
  let passedMs = 0
  let address = OLD
  const { counts, port } = await startMachines([OLD, NEW], handler)
  const clock = { now: () => Date.now(), monotonic: () => performance.now() + passedMs }
  const world = openSender({ allowNetworks, lookup: async () => [address] }, { clock, random: () => random })
  onTestFinished(() => world.sender.close())
  return {
    counts,
    /** Posts after the connections of earlier posts are back in their pool, which takes a few turns of the event loop. */
    async post() {
      for (let turn = 0; turn < 3; turn++) await setImmediate()
      return await world.post(`http://shop.test:${port}/`)
    },
    move: () => {
      address = NEW
    },
    pass: (ms: number) => {
      passedMs += ms
    },
  }
}

const MINUTE = 60_000

describe('a connection to a receiver', () => {
  test.each([
    [0, 4],
    [0.999_999, 5],
  ])('O17: serves four to five minutes, so a receiver that moves by DNS is found: random %s', async (random, minutes) => {
    const { counts, post, move, pass } = await openWorld({ random })
    await post()
    move()
    for (let second = 0; second < 3; second++) {
      pass((minutes * MINUTE - 10_000) / 3)
      expect(await post()).toMatchObject({ kind: 'accepted' })
    }
    expect(counts).toEqual({ [OLD]: 4, [NEW]: 0 })
    pass(10_000)
    expect(await post()).toMatchObject({ kind: 'accepted', address: NEW })
    await post()
    expect(counts).toEqual({ [OLD]: 4, [NEW]: 2 })
  })

  test('is guarded anew when it is replaced', async () => {
    const { counts, post, move, pass } = await openWorld({ allowNetworks: [`${OLD}/32`] })
    expect(await post()).toMatchObject({ kind: 'accepted' })
    move()
    pass(5 * MINUTE)
    expect(await post()).toMatchObject({ kind: 'failed', reason: 'forbidden' })
    expect(counts).toEqual({ [OLD]: 1, [NEW]: 0 })
  })

  test('is not closed while a request is under way, but after its answer', async () => {
    const held: ServerResponse[] = []
    const { counts, post, move, pass } = await openWorld({ handler: (_request, response) => void held.push(response) })
    const first = post()
    await expect.poll(() => held.length).toBe(1)
    move()
    pass(5 * MINUTE)
    const second = post()
    await expect.poll(() => held.length).toBe(2)
    for (const response of held.splice(0)) response.end()
    expect(await first).toMatchObject({ kind: 'accepted', address: OLD })
    expect(await second).toMatchObject({ kind: 'accepted', address: NEW })
    const third = post()
    await expect.poll(() => held.length).toBe(1)
    held[0]?.end()
    expect(await third).toMatchObject({ kind: 'accepted', address: NEW })
    expect(counts).toEqual({ [OLD]: 1, [NEW]: 2 })
  })
})

describe('a connection to the carrier', () => {
  test.each(['directly', 'through a proxy'])('serves at most five minutes %s, then is made anew', async (way) => {
    const connections = new Set<unknown>()
    const url = await openTls((request, response) => {
      connections.add(request.socket)
      request.resume()
      json(response, 200, request.method === 'POST' ? JSON.stringify({ token: 't' }) : goodBody)
    })
    const proxy = way === 'directly' ? {} : { proxy: (await startForwardProxy()).url }
    const { fetchAll, move } = connect(url, { concurrency: 1, ca: certificate, ...proxy })
    for (let call = 0; call < 3; call++) expect(await fetchAll()).toMatchObject({ kind: 'found' })
    expect(connections.size).toBe(1)
    move(5 * MINUTE)
    for (let call = 0; call < 3; call++) expect(await fetchAll()).toMatchObject({ kind: 'found' })
    expect(connections.size).toBe(2)
  })
})
