import { once } from 'node:events'
import { createServer, request as forward, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { onTestFinished } from 'vitest'
import { listen } from './listen.ts'

export interface ForwardProxy {
  readonly url: string
  /** Requests received: `CONNECT host:port`, or `POST http://host:port/path`. */
  readonly asked: readonly string[]
  /** The credentials of each request. */
  readonly credentials: readonly (string | undefined)[]
}

/**
 * Starts a typical corporate HTTP proxy, which tunnels by CONNECT and forwards plain http. It resolves every name to this machine. `password`: a
 * request without this password gets a 407. `refuse`: the proxy refuses tunnels. `silent`: it never answers.
 */
export async function startForwardProxy(manner: { password?: string; refuse?: boolean; silent?: boolean } = {}): Promise<ForwardProxy> {
  const asked: string[] = []
  const credentials: (string | undefined)[] = []
  const isKnown = ({ headers }: IncomingMessage) => {
    const expected = `Basic ${Buffer.from(`relay:${manner.password}`).toString('base64')}`
    return manner.password === undefined || headers['proxy-authorization'] === expected
  }
  const note = (request: IncomingMessage) => {
    asked.push(`${request.method} ${request.url}`)
    credentials.push(request.headers['proxy-authorization'])
  }
  const sockets = new Set<Duplex>()
  const server = createServer((request, response) => {
    note(request)
    if (manner.silent === true) return
    if (!isKnown(request)) return void response.writeHead(407).end()
    const target = new URL(request.url ?? '')
    const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !name.startsWith('proxy-')))
    const onward = forward({ host: '127.0.0.1', port: target.port, path: target.pathname, method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.writeHead(502).end())
    request.pipe(onward)
  })
  server.on('connection', (socket) => sockets.add(socket))
  server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    note(request)
    socket.on('error', () => socket.destroy())
    if (manner.silent === true) return
    if (!isKnown(request)) return void socket.end('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n')
    if (manner.refuse === true) return void socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n')
    const onward = connect(Number(request.url?.split(':').at(-1)), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      socket.pipe(onward).pipe(socket)
    })
    sockets.add(onward)
    onward.on('error', () => socket.destroy())
  })
  const port = await listen(server)
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    const closed = once(server, 'close')
    server.close()
    await closed
  })
  return { url: `http://127.0.0.1:${port}`, asked, credentials }
}
