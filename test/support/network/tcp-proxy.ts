import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { listen } from './listen.ts'

export interface TcpProxy {
  readonly port: number
  /** Acts like a network that drops packets: accepts and keeps connections, but passes nothing in either direction. */
  swallow(): void
  /** Lets everything pass again, beginning with what was sent meanwhile. */
  flow(): void
  /** Acts like a server that goes down: resets connections, and refuses new ones. */
  goDown(): Promise<void>
  /** Accepts connections again, at the same port. */
  comeUp(): Promise<void>
  /** Returns the number of round trips on all connections: how often a client has sent after it received. */
  trips(): number
}

/** Starts a proxy in front of a port of this machine. `awayMs`: the delay of everything that the server sends. */
export async function startTcpProxy(target: number, options: { readonly awayMs?: number } = {}): Promise<TcpProxy> {
  const proxy = await openTcpProxy(target, options)
  onTestFinished(() => proxy[Symbol.asyncDispose]())
  return proxy
}

/** Starts a proxy in front of a database server. `through`: the URL by which to reach the database through the proxy. */
export async function startDatabaseProxy(url: string, options: { readonly awayMs?: number } = {}) {
  const proxy = await startTcpProxy(Number(new URL(url).port), options)
  const through = new URL(url)
  through.port = String(proxy.port)
  return { ...proxy, through: through.href }
}

/** Opens a TCP proxy for the tests of a whole file. The caller closes it. */
export async function openTcpProxy(target: number, { awayMs = 0 }: { readonly awayMs?: number } = {}): Promise<TcpProxy & AsyncDisposable> {
  const pairs = new Set<readonly [Socket, Socket]>()
  let isSwallowing = false
  let trips = 0
  const server = createServer({ noDelay: true }, (client) => {
    const onward = connect({ port: target, host: '127.0.0.1', noDelay: true })
    const pair = [client, onward] as const
    pairs.add(pair)
    let hasReceived = true
    client.on('data', () => {
      if (hasReceived) trips += 1
      hasReceived = false
    })
    const deliver = (chunk: Buffer) => {
      hasReceived = true
      client.write(chunk)
    }
    onward.on('data', (chunk) => (awayMs === 0 ? deliver(chunk) : setTimeout(deliver, awayMs, chunk)))
    client.pipe(onward)
    for (const [from, to] of [pair, [onward, client]] as const) {
      from.on('error', () => to.destroy())
      from.on('close', () => {
        to.destroy()
        pairs.delete(pair)
      })
    }
    if (isSwallowing) hold(pair)
  })
  const hold = (pair: readonly [Socket, Socket]) => {
    for (const socket of pair) socket.pause()
  }
  const port = await listen(server)
  return {
    port,
    swallow() {
      isSwallowing = true
      for (const pair of pairs) hold(pair)
    },
    flow() {
      isSwallowing = false
      for (const pair of pairs) for (const socket of pair) socket.resume()
    },
    async goDown() {
      const closed = once(server, 'close')
      server.close()
      for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy()
      await closed
    },
    async comeUp() {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
    trips: () => trips,
    async [Symbol.asyncDispose]() {
      for (const pair of pairs) for (const socket of pair) socket.destroy()
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      await closed
    },
  }
}
