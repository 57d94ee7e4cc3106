import { once } from 'node:events'
import { createServer } from 'node:http'
import { describe, expect, test } from 'vitest'
import { connectStaggered, STAGGER_MS, type StartAttempt } from '../../../src/core/outbound/guarded-connector.ts'
import { openServerSocket } from '../../../src/server/postgres/server-watch.ts'
import { openSilentPort, SILENT_ADDRESS } from '../../support/network/silent-address.ts'
import { closeOpened, connect, goodBody, json } from '../carrier/carrier-double.ts'
import { LOOPBACK, openSender } from './sender-world.ts'

/** Opens a race of connection attempts that succeed or fail when the test says so, on a clock that the test moves. */
function openRace(addresses: readonly string[]) {
  const begun = new Map<string, Parameters<StartAttempt<string>>[1]>()
  const givenUp: string[] = []
  const timers: { readonly run: () => void; readonly delayMs: number }[] = []
  const ended: unknown[] = []
  connectStaggered<string>(
    addresses,
    (address, callbacks) => {
      begun.set(address, callbacks)
      return { giveUp: () => void givenUp.push(address) }
    },
    (delayMs, run) => {
      const timer = { run, delayMs }
      timers.push(timer)
      return () => void timers.splice(timers.indexOf(timer), timers.includes(timer) ? 1 : 0)
    },
    (...result) => void ended.push(result),
  )
  return {
    begun: () => [...begun.keys()],
    givenUp,
    ended,
    timers: () => timers.map(({ delayMs }) => delayMs),
    wait: () => timers.shift()?.run(),
    answer: (address: string) => begun.get(address)?.onConnected(`to ${address}`),
    fail: (address: string) => begun.get(address)?.onFailed(new Error(address)),
  }
}

describe('the addresses of a host', () => {
  test('each get a quarter of a second before the next is tried too', () => {
    const race = openRace(['10.0.0.1', '10.0.0.2', '10.0.0.3'])
    expect([race.begun(), race.timers()]).toEqual([['10.0.0.1'], [STAGGER_MS]])
    race.wait()
    race.wait()
    expect([race.begun(), race.timers(), race.ended]).toEqual([['10.0.0.1', '10.0.0.2', '10.0.0.3'], [], []])
  })

  test('race: the first to answer wins, and the others are given up', () => {
    const race = openRace(['10.0.0.1', '10.0.0.2', '10.0.0.3'])
    race.wait()
    race.answer('10.0.0.1')
    expect([race.ended, race.givenUp, race.begun(), race.timers()]).toEqual([
      [[null, 'to 10.0.0.1']],
      ['10.0.0.2'],
      ['10.0.0.1', '10.0.0.2'],
      [],
    ])
    race.fail('10.0.0.2')
    race.answer('10.0.0.2')
    expect(race.ended).toHaveLength(1)
  })

  test('are replaced at once when they fail, and the last failure is reported', () => {
    const race = openRace(['10.0.0.1', '10.0.0.2'])
    race.fail('10.0.0.1')
    expect([race.begun(), race.timers()]).toEqual([['10.0.0.1', '10.0.0.2'], []])
    race.fail('10.0.0.2')
    expect(race.ended).toEqual([[new Error('10.0.0.2'), null]])
  })

  test('are still waited for when the last address fails before them', () => {
    const race = openRace(['10.0.0.1', '10.0.0.2'])
    race.wait()
    race.fail('10.0.0.2')
    race.answer('10.0.0.1')
    expect(race.ended).toEqual([[null, 'to 10.0.0.1']])
  })

  test('alternate between IPv6 and IPv4, beginning with the first', () => {
    const race = openRace(['fd00::1', 'fd00::2', 'fd00::3', '10.0.0.1', '10.0.0.2'])
    for (const _ of race.begun()) while (race.timers().length > 0) race.wait()
    expect(race.begun()).toEqual(['fd00::1', '10.0.0.1', 'fd00::2', '10.0.0.2', 'fd00::3'])
  })

  test('beyond the tenth are not tried', () => {
    const race = openRace(Array.from({ length: 300 }, (_, place) => `10.0.${place}.1`))
    while (race.timers().length > 0) race.wait()
    expect(race.begun()).toHaveLength(10)
  })
})

describe('O4: a host whose first address drops packets', () => {
  const both = [SILENT_ADDRESS, '127.0.0.1']

  /** Starts a server on 127.0.0.1. At the same port, `SILENT_ADDRESS` drops all packets. */
  async function openBeside(answer: Parameters<typeof createServer>[1]) {
    const port = await openSilentPort()
    const server = createServer(answer)
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    const close = async (): Promise<void> => {
      const closed = once(server, 'close')
      server.close().closeAllConnections()
      await closed
    }
    return { port, [Symbol.asyncDispose]: close }
  }

  test('gets posts at its second address, without a wait for the first', async () => {
    await using server = await openBeside((_request, response) => void response.end())
    await using world = openSender({ allowNetworks: LOOPBACK, lookup: async () => both }, { timeoutMs: 60_000 })
    expect(await world.post(`http://shop.internal:${server.port}/hook`)).toMatchObject({ kind: 'accepted' })
  })

  test('gets no post if the guard refuses its second address', async () => {
    await using server = await openBeside((_request, response) => void response.end())
    await using world = openSender({ allowNetworks: [`${SILENT_ADDRESS}/32`], lookup: async () => both }, { timeoutMs: 60_000 })
    expect(await world.post(`http://shop.internal:${server.port}/hook`)).toMatchObject({ kind: 'failed', reason: 'forbidden' })
  })

  test('P1: is reached at its second address if it is the carrier', async () => {
    await using server = await openBeside((request, response) =>
      json(response, 200, request.method === 'POST' ? '{"token":"t"}' : goodBody),
    )
    const hosts = { checkHost: async () => ({ ok: true, addresses: both }) as const }
    const { fetchAll } = connect(`http://carrier.example:${server.port}`, { hosts, timeoutMs: 60_000 })
    expect(await fetchAll()).toMatchObject({ kind: 'found' })
    await closeOpened()
  })

  test('S18: is reached at its second address if it is the database', async () => {
    await using server = await openBeside(() => undefined)
    const socket = openServerSocket((_host, _options, callback) =>
      callback(
        null,
        both.map((address) => ({ address, family: 4 })),
      ),
    )
    const connected = await new Promise((resolve, reject) => {
      socket.once('connect', () => resolve(socket.remoteAddress)).once('error', reject)
      socket.connect(server.port, 'db.internal')
    })
    socket.destroy()
    expect(connected).toBe('127.0.0.1')
  })
})
