import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, Server as NetServer } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { shareTurns } from './request-turns.ts'

export interface ServerOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** `limits.connections`: further ones are closed at once. */
  readonly connectionsMax: number
  /** `limits.requestsWaiting`: of requests that came behind others on their connections, over all of these. */
  readonly requestsWaitingMax: number
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer }
  readonly timeouts?: Partial<ServerTimeouts>
}

export interface ServerTimeouts {
  /** From the first byte of a request, or the connection's start, to the end of its headers. */
  readonly headersMs: number
  /** To the end of its body. */
  readonly requestMs: number
  /** Longer than a proxy's idle time, so that it is never the proxy that meets a closed connection. */
  readonly keepAliveMs: number
  /** Without any byte moving either way: somebody who does not read does not stay. */
  readonly inactiveMs: number
}

export interface RunningServer {
  /** As bound. */
  readonly host: string
  readonly port: number
  /** Takes no more connections, lets what is in flight finish, and closes what has not finished in time. */
  stop(timeoutMs: number): Promise<void>
}

const TIMEOUTS: ServerTimeouts = { headersMs: 5000, requestMs: 10_000, keepAliveMs: 72_000, inactiveMs: 60_000 }
const HEADER_BYTES_MAX = 16 * 1024
const SWEEP_MS = 100
/** Of clients that never cease to connect, a stop takes no more after this. */
const TAKING_MS_MAX = 250

/** Binds a listener with limits on everything a client can stretch; the platform's own are lax. */
export async function startServer(listener: RequestListener, options: ServerOptions): Promise<RunningServer> {
  const timeouts = { ...TIMEOUTS, ...options.timeouts }
  const limits = {
    headersTimeout: timeouts.headersMs,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    connectionsCheckingInterval: Math.min(500, timeouts.headersMs),
    maxHeaderSize: HEADER_BYTES_MAX,
  }
  const server = options.tls === undefined ? createServer(limits) : createTlsServer({ ...limits, ...options.tls })
  server.maxConnections = options.connectionsMax
  // Counted by the guard: the platform would silently drop what is over its own limit.
  server.maxHeadersCount = 0
  server.setTimeout(timeouts.inactiveMs)

  let stopping = false
  const turns = shareTurns(listener, options.requestsWaitingMax)
  const handle: RequestListener = (req, res) => {
    if (stopping) res.setHeader('Connection', 'close')
    turns.handle(req, res)
  }
  server.on('request', handle)
  // Not answered by the platform: 100 is for a body that somebody wants. Until it is sent the response must be able to close.
  server.on('checkContinue', handle)
  const { address, port } = await listen(server, options)
  return {
    host: address,
    port,
    stop: (timeoutMs) => {
      stopping = true
      // Told that this was the last, no client begins another on a connection that is about to be closed.
      for (const last of turns.lastOwed()) if (!last.headersSent) last.setHeader('Connection', 'close')
      return stop(server, timeoutMs)
    },
  }
}

function listen(server: Server, { host, port }: ServerOptions): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      const address = server.address()
      if (address === null || typeof address === 'string') reject(new Error('the server is bound to no network address'))
      else resolve(address)
    })
  })
}

/**
 * What was sent before the stop is answered, though it may still lie in the system's buffers: connections are taken as long as each turn of
 * the loop brings one, and kept ones are closed only by the sweeps. Sweeps, because a connection that is busy now turns idle later; at the
 * end of a turn, because what has come meanwhile is read before it.
 */
async function stop(server: Server, timeoutMs: number): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  const deadline = setTimeout(() => server.closeAllConnections(), timeoutMs)
  await takeWaiting(server)
  // An HTTP server's own way to close begins with its idle connections, on which a request may be under way: it comes last.
  NetServer.prototype.close.call(server, () => resolve())
  const sweep = setInterval(() => setImmediate(() => server.closeIdleConnections()), SWEEP_MS)
  await closed
  clearInterval(sweep)
  clearTimeout(deadline)
  server.close()
}

/** Connections that are made and not taken yet would be broken with the listener; the platform takes one a turn. */
async function takeWaiting(server: Server): Promise<void> {
  const untilMs = performance.now() + TAKING_MS_MAX
  let taken = false
  const note = () => {
    taken = true
  }
  // What the platform tells of a connection, before any handshake on it.
  server.on('connection', note)
  do {
    taken = false
    await nextTurn()
  } while (taken && performance.now() < untilMs)
  server.off('connection', note)
}
