import type { IncomingMessage, RequestListener } from 'node:http'
import type { Context, Middleware } from 'koa'
import Koa from 'koa'
import { AppError } from '../../domain/errors.ts'
import type { Log } from '../../flow/ports.ts'
import { type MisdirectedPorts, noteMisdirected, receivePushes, type WebhookPorts } from '../ingest/webhook.routes.ts'
import { presentJson } from './answer-schemas.ts'
import { EdgeError, noSuchAddress, presentProblems } from './errors.ts'
import { headerValues } from './request-headers.ts'

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

interface PublicOptions extends AppOptions, WebhookPorts, MisdirectedPorts {}

/** Creates the listener for the carrier. It serves the webhook and `/healthz`, nothing else. */
export function createPublicListener(options: PublicOptions): RequestListener {
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
