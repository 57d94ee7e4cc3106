import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { proveConnection } from '../../../../src/core/http/server/connection-slots.ts'
import { certificate, certificateKey } from '../../outbound/self-signed.ts'
import { start } from '../harness.ts'

const PATIENTLY = { timeout: 60_000 }
const FIRST_REQUEST_MS = 10_000
/** All limits but the first are too long to matter here. */
const TIMEOUTS = { firstRequestMs: FIRST_REQUEST_MS, headersMs: 600_000, requestMs: 600_000, inactiveMs: 600_000 }
const TLS = { cert: certificate, key: certificateKey }

const HEAD = 'GET / HTTP/1.1\r\nHost: relay\r\n'
const GET = `${HEAD}\r\n`
const HALF_BODY = 'POST / HTTP/1.1\r\nHost: relay\r\nContent-Length: 10\r\n\r\n12345'
/** The start of a TLS record that announces 512 bytes of handshake. */
const HALF_HANDSHAKE = Buffer.from('160301020001', 'hex')

type Transport = 'plain' | 'tls'

/** Starts a listener that answers once it has the whole request. A request for `/proven` marks its connection as authenticated. */
async function open(transport: Transport, options: { readonly connectionsMax?: number } = {}) {
  let nowMs = 0
  const server = await start(
    (req, res) => {
      req.resume().once('end', () => {
        if (req.url === '/proven') proveConnection(req)
        res.end('here')
      })
    },
    { timeouts: TIMEOUTS, now: () => nowMs, ...options, ...(transport === 'tls' ? { tls: TLS } : {}) },
  )
  const kept = (socket: Socket): Socket => {
    onTestFinished(() => void socket.destroy())
    return socket.on('error', () => undefined).resume()
  }
  const dial = () => kept(connectTcp(server.port, '127.0.0.1'))
  return {
    server,
    dial,
    /** Advances the clock again and again until a connection is closed, because the server may accept the connection late. */
    async passUntilClosed(socket: Socket): Promise<void> {
      const waited = () => {
        nowMs += FIRST_REQUEST_MS
        return socket.closed
      }
      await expect.poll(waited, PATIENTLY).toBe(true)
    },
    /** Connects. Unlike `dial`, it also completes the handshake if the listener uses TLS. */
    async meet(): Promise<Socket> {
      if (transport === 'plain') return dial()
      const socket = connectTls({ port: server.port, host: '127.0.0.1', rejectUnauthorized: false })
      kept(socket)
      await once(socket, 'secureConnect')
      return socket
    },
  }
}

async function answerOf(socket: Socket, path = '/'): Promise<string> {
  const said = once(socket, 'data')
  socket.write(GET.replace('GET /', `GET ${path}`))
  const [bytes] = await said
  return String(bytes)
}

describe.each(['plain', 'tls'] as const)('on a %s listener', (transport) => {
  test.each([
    ['sends nothing', transport === 'plain' ? 'dial' : 'meet', ''],
    ['sends half a header', 'meet', HEAD],
    ['sends half a body', 'meet', HALF_BODY],
    ['sends nothing of its handshake', 'dial', ''],
    ['sends half a handshake', 'dial', HALF_HANDSHAKE],
  ] as const)('H15, F7, I16: a connection that %s is closed, but not one that has sent a request', async (_name, how, bytes) => {
    const { dial, meet, passUntilClosed } = await open(transport)
    const control = await meet()
    expect(await answerOf(control)).toContain('200 OK')
    const socket = how === 'dial' ? dial() : await meet()
    socket.write(bytes)
    await passUntilClosed(socket)
    expect(await answerOf(control)).toContain('200 OK')
  })

  test('I16: if silent connections take all slots, the oldest is closed to let a request in', async () => {
    const { dial, meet } = await open(transport, { connectionsMax: 8 })
    const proven = await meet()
    expect(await answerOf(proven, '/proven')).toContain('200 OK')
    const silent = Array.from({ length: 7 }, dial)
    await Promise.all(silent.map((socket) => once(socket, 'connect')))
    const asks = await meet()
    expect(await answerOf(asks)).toContain('200 OK')
    await expect.poll(() => silent.map(({ closed }) => closed), PATIENTLY).toEqual([true, ...Array(6).fill(false)])
    for (let nth = 0; nth < 40; nth++) await once(dial(), 'connect')
    expect(await answerOf(proven)).toContain('200 OK')
  })
})

test('X1: a stop does not wait for a TLS handshake that never ends', async () => {
  const { server, dial } = await open('tls')
  const socket = dial()
  socket.write(HALF_HANDSHAKE)
  await once(socket, 'connect')
  await server.stop(50)
  await expect.poll(() => socket.closed, PATIENTLY).toBe(true)
})
