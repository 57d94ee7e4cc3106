import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { createConnectionSlots, proveConnection } from '../../../../src/core/http/server/connection-slots.ts'

const FIRST_REQUEST_MS = 10_000

/** Makes a connection as the listener sees it, without a network. */
function peerOf(port: number) {
  const written: string[] = []
  const socket = Object.assign(new EventEmitter(), {
    remoteAddress: '203.0.113.1',
    remotePort: port,
    isClosed: false,
    written,
    write: (text: string) => written.push(text),
    destroy() {
      socket.isClosed = true
      socket.emit('close')
    },
    destroySoon: () => socket.destroy(),
  })
  return socket
}

type Peer = ReturnType<typeof peerOf>

function open(slotsMax: number) {
  let nowMs = 0
  let ports = 0
  const slots = createConnectionSlots({ slotsMax, firstRequestMs: FIRST_REQUEST_MS, now: () => nowMs })
  const requests = new Map<Peer, { complete: boolean; socket: Peer }>()
  return {
    connect(): Peer {
      const peer = peerOf(++ports)
      slots.take(peer as never)
      return peer
    },
    /** Simulates the arrival of the first header. */
    begin(peer: Peer): void {
      const request = { complete: false, socket: peer }
      requests.set(peer, request)
      slots.begun(request as never, { headersSent: false } as never)
    },
    /** Simulates the arrival of the whole first request. */
    ask(peer: Peer): void {
      this.begin(peer)
      Object.assign(requests.get(peer) ?? {}, { complete: true })
    },
    prove: (peer: Peer) => proveConnection({ socket: peer as never }),
    pass(ms: number): void {
      nowMs += ms
      slots.sweep()
    },
  }
}

const closed = (...peers: readonly Peer[]) => peers.map(({ isClosed }) => isClosed)

test('I16: a connection without a whole request is closed after 10 s', () => {
  const world = open(10)
  const [silent, half, whole] = [world.connect(), world.connect(), world.connect()]
  world.pass(9000)
  world.begin(half)
  world.ask(whole)
  const later = world.connect()
  world.pass(999)
  expect(closed(silent, half, whole, later)).toEqual([false, false, false, false])
  world.pass(1)
  expect(closed(silent, half, whole, later)).toEqual([true, true, false, false])
  expect(half.written.join('')).toContain('408')
  world.pass(9000)
  expect(closed(whole, later)).toEqual([false, true])
})

test('I16: if slots are short, the oldest connection without a whole request is closed', () => {
  const world = open(3)
  const [asked, first, second] = [world.connect(), world.connect(), world.connect()]
  world.ask(asked)
  world.begin(first)
  const third = world.connect()
  expect(closed(asked, first, second, third)).toEqual([false, true, false, false])
  const fourth = world.connect()
  expect(closed(asked, second, third, fourth)).toEqual([false, true, false, false])
})

test('I16: if all connections have sent a request, the oldest unauthenticated one is closed', () => {
  const world = open(3)
  const peers = [world.connect(), world.connect(), world.connect()] as const
  for (const peer of peers) world.ask(peer)
  world.prove(peers[0])
  const newcomer = world.connect()
  expect(closed(...peers, newcomer)).toEqual([false, true, false, false])
})

test('I16: an authenticated connection is never closed to make room for a silent one', () => {
  const world = open(3)
  const peers = [world.connect(), world.connect(), world.connect()]
  for (const peer of peers) {
    world.ask(peer)
    world.prove(peer)
  }
  const newcomers = Array.from({ length: 100 }, () => world.connect())
  expect(closed(...peers)).toEqual([false, false, false])
  expect(newcomers.every(({ isClosed }) => isClosed)).toBe(true)
})

test('I16: a closed connection frees its slot', () => {
  const world = open(2)
  const [first, second] = [world.connect(), world.connect()]
  second.destroy()
  const third = world.connect()
  expect(closed(first, third)).toEqual([false, false])
})
