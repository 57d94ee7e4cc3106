import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, Server as NetServer } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Context, Middleware } from 'koa'
import Koa from 'koa'
import { AppError } from '../../domain/errors.ts'
import type { Log } from '../../flow/ports.ts'
import { type MisdirectedPorts, noteMisdirected, receivePushes, type WebhookPorts } from '../ingest/webhook.routes.ts'
import { presentJson } from './answer-schemas.ts'
import { createConnectionSlots } from './connection-slots.ts'
import { EdgeError, noSuchAddress, presentProblems } from './problems.ts'
import { headerValues } from './request-headers.ts'
import { shareTurns } from './request-turns.ts'

interface ServerOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** `limits.connections`, including those in a TLS handshake. */
  readonly connectionsMax: number
  /** `limits.requestsWaiting`: how many pipelined requests may wait, over all connections. */
  readonly requestsWaitingMax: number
  readonly tls?: ServerTls
  readonly timeouts?: Partial<ServerTimeouts>
  /** A monotonic clock for the deadline of first requests. Default: `performance.now`. */
  readonly now?: () => number
}

interface ServerTls {
  readonly cert: string | Buffer
  readonly key: string | Buffer
}

export interface ServerTimeouts {
  /** From the start of a connection to the end of its first request, including the TLS handshake. */
  readonly firstRequestMs: number
  /** From the first byte of a request to the end of its headers. For the first request, from the start of the connection. */
  readonly headersMs: number
  /** From the same start as `headersMs` to the end of the body. */
  readonly requestMs: number
  /** How long an idle connection stays open. It must be longer than a proxy's idle timeout: else the proxy may use a connection that is closing. */
  readonly keepAliveMs: number
  /** How long a connection may have no traffic in either direction. This closes the connections of clients that do not read answers. */
  readonly inactiveMs: number
}

const TIMEOUTS: ServerTimeouts = {
  firstRequestMs: 10_000,
  headersMs: 5000,
  requestMs: 10_000,
  keepAliveMs: 72_000,
  inactiveMs: 60_000,
}
/** How often to look for connections that have exceeded a time limit. */
const CHECK_MS = 500
const HEADER_BYTES_MAX = 16 * 1024
const SWEEP_MS = 100
/** How long a stopping server goes on accepting the connections that wait in its backlog. */
const TAKING_MS_MAX = 2000

/** Starts a server with limits on everything that a client could make slow or large. */
export async function startServer(listener: RequestListener, options: ServerOptions) {
  const timeouts = { ...TIMEOUTS, ...options.timeouts }
  const limits = {
    headersTimeout: timeouts.headersMs,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    connectionsCheckingInterval: Math.min(CHECK_MS, timeouts.headersMs),
    maxHeaderSize: HEADER_BYTES_MAX,
  }
  const tlsServer = options.tls === undefined ? null : createTlsServer({ ...limits, ...options.tls })
  const server = tlsServer ?? createServer(limits)
  // Set no limit here, because Node would silently drop the headers above the limit. `guardRequests` counts the headers instead.
  server.maxHeadersCount = 0
  server.setTimeout(timeouts.inactiveMs)

  const { firstRequestMs } = timeouts
  const { connectionsMax, now = () => performance.now() } = options
  const slots = createConnectionSlots({ slotsMax: connectionsMax, firstRequestMs, now })
  // This event fires before any TLS handshake.
  server.on('connection', slots.take)
  const checking = setInterval(slots.sweep, CHECK_MS).unref()

  let stopping = false
  const turns = shareTurns(listener, options.requestsWaitingMax, slots.begun)
  const handle: RequestListener = (req, res) => {
    if (stopping) res.setHeader('Connection', 'close')
    turns.handle(req, res)
  }
  server.on('request', handle)
  // Without this handler Node sends `100 Continue` itself, even for a push that will be refused without reading its body.
  server.on('checkContinue', handle)
  const { address, port } = await listen(server, options)
  return {
    /** The IP address to which the server is bound. */
    host: address,
    port,
    /** Uses another certificate from the next handshake on. If its key does not fit, throws and changes nothing. Without TLS, does nothing. */
    replaceTls: (tls: ServerTls) => tlsServer?.setSecureContext(tls),
    /** Accepts no more connections, lets running requests finish, and closes the connections that have not finished after `timeoutMs`. */
    stop: async (timeoutMs: number) => {
      stopping = true
      // `Connection: close` on the last answer tells the client not to send another request on this connection.
      for (const last of turns.lastOwed()) if (!last.headersSent) last.setHeader('Connection', 'close')
      await stop(server, connectionsMax, slots.closeAll, timeoutMs)
      clearInterval(checking)
    },
  }
}

function listen(server: Server, { host, port, connectionsMax }: ServerOptions): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    // With Node's default of 511 the system makes the other clients of a burst wait for a second or more. The system may set a lower limit.
    server.listen({ host, port, backlog: connectionsMax }, () => {
      server.off('error', reject)
      const address = server.address()
      if (address === null || typeof address === 'string') reject(new Error('the server is bound to no network address'))
      else resolve(address)
    })
  })
}

/**
 * Answers every request that was sent before the stop, even if it is still in the system's buffers. Closes idle connections repeatedly,
 * because busy ones become idle later. Does so at the end of a turn of the event loop, because Node has then read the requests that arrived.
 */
async function stop(server: Server, backlogMax: number, closeAll: () => void, timeoutMs: number): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  const deadline = setTimeout(() => {
    // `closeAll` is needed too, because Node's HTTP server does not know a connection before its TLS handshake has ended.
    closeAll()
    server.closeAllConnections()
  }, timeoutMs)
  await takeWaiting(server, backlogMax)
  // Do not call `http.Server.close` yet: it also closes idle connections, on which a request may just be arriving.
  NetServer.prototype.close.call(server, () => resolve())
  const sweep = setInterval(() => setImmediate(() => server.closeIdleConnections()), SWEEP_MS)
  await closed
  clearInterval(sweep)
  clearTimeout(deadline)
  server.close()
}

/** Accepts the connections in the backlog, one in each turn of the event loop, because closing the listener breaks them. */
async function takeWaiting(server: Server, backlogMax: number): Promise<void> {
  const untilMs = performance.now() + TAKING_MS_MAX
  let turns = 0
  let taken = false
  const note = () => {
    taken = true
  }
  server.on('connection', note)
  do {
    taken = false
    await nextTurn()
  } while (taken && ++turns < backlogMax && performance.now() < untilMs)
  server.off('connection', note)
}

export interface AppOptions {
  readonly log: Log
  /** Whether the routes count refused requests and log the counts. Then a 503 gets no warning. Default: false. */
  readonly areRefusalsCounted?: boolean
}

/** Makes a listener. `mount` adds its routes. Both listeners have the guard before the routes, and answer errors with problem documents. */
export function createListener({ log, areRefusalsCounted = false }: AppOptions, mount: (app: Koa) => void): RequestListener {
  const app = new Koa()
  // Koa emits this event only if a connection breaks during an answer. Without a handler Koa prints the error.
  app.on('error', (err: unknown) => log.debug({ err }, 'a connection broke during an answer'))
  app.use(presentProblems(log, { areCounted: areRefusalsCounted }))
  app.use(guardRequests())
  mount(app)
  const handle = app.callback()
  return (req, res) => void handle(req, res)
}

const HEADERS_MAX = 1000
/** The scheme and host of a request target such as `http://host/path`, which a server must accept (RFC 9112, 3.2.2). The guard ignores both. */
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*/i

/** Refuses requests that Node accepts, although a proxy may read them differently: odd transfer codings, two Host headers, too many headers. */
function guardRequests(): Middleware {
  return (ctx, next) => {
    const { req } = ctx
    const ambiguity = ambiguityOf(req)
    if (ambiguity !== null) {
      ctx.set('Connection', 'close')
      throw ambiguity
    }
    const target = req.url ?? '/'
    if (!target.startsWith('/')) {
      const path = target.replace(ABSOLUTE_FORM, '')
      if (path === target) throw noSuchAddress()
      req.url = path.startsWith('/') ? path : `/${path}`
    }
    return next()
  }
}

function ambiguityOf(req: IncomingMessage): Error | null {
  if (req.rawHeaders.length > HEADERS_MAX * 2)
    return new EdgeError('headers_too_large', `A request may have at most ${HEADERS_MAX} headers.`)
  const coding = req.headers['transfer-encoding']
  if (coding !== undefined && (coding.trim().toLowerCase() !== 'chunked' || req.httpVersionMinor === 0)) {
    return new AppError('bad_request', 'The only supported transfer coding is "chunked".')
  }
  return headerValues(req, 'host').length > 1 ? new AppError('bad_request', 'Send exactly one Host header.') : null
}

/** Creates the listener for the carrier. It serves the webhook and `/healthz`, nothing else. */
export function createPublicListener(options: AppOptions & WebhookPorts & MisdirectedPorts): RequestListener {
  return createListener({ ...options, areRefusalsCounted: true }, (app) =>
    app.use(receivePushes(options)).use(healthRoute()).use(noteMisdirected(options)),
  )
}

/** Answers GET and HEAD /healthz: the process is alive. Does not touch the store or the carrier. */
export function answerHealth(ctx: Context): void {
  presentJson(ctx, 200, { status: 'ok' })
}

/** Serves GET and HEAD /healthz on the public listener, which has no router. */
function healthRoute(): Middleware {
  return async (ctx, next) => {
    if (ctx.path !== '/healthz') {
      await next()
      return
    }
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD')
      throw new EdgeError('method_not_allowed', 'Allowed here: GET, HEAD.', { allow: 'GET, HEAD' })
    answerHealth(ctx)
  }
}
