import type { IncomingMessage } from 'node:http'
import type { Context, Middleware } from 'koa'
import type { Authenticate } from '../../flow/admin/authenticate.ts'
import type { Question, Served } from '../../flow/history/answer.ts'
import type { Serve } from '../../flow/history/serve.ts'
import { headerValues } from '../server/header-values.ts'
import { headersOf } from './status.routes.ts'

/** How nearly every app writes its question. */
const PLAIN = /^\/v1\/status\/([A-Za-z0-9]{4,40})\/(all|latest)(?:\?language=([A-Za-z]{2,8}))?$/
const BEARER = 'Bearer '
/** Nearly every answer is smaller. A larger one is sent as it is kept: however many ask, and however slowly they read, there is one of it. */
const COPIED_BYTES_MAX = 16 * 1024

export interface PlainRequestOptions {
  readonly serve: Pick<Serve, 'ask' | 'fromCache'>
  readonly authenticate: Pick<Authenticate, 'recognize'>
}

/**
 * A short way for the question that is asked most: plainly written, by an app whose token is remembered. Routing, waiting for promises and
 * setting headers one by one cost twice what an answer costs that is kept. All else is left to the status routes, which would say the same.
 */
export function plainRequests({ serve, authenticate }: PlainRequestOptions): Middleware {
  const read = (req: IncomingMessage): Question | null => {
    if (req.method !== 'GET' || req.headers['if-none-match'] !== undefined) return null
    const plain = PLAIN.exec(req.url ?? '')
    const [bearer, ...more] = headerValues(req, 'authorization')
    if (plain === null || bearer === undefined || more.length > 0 || !bearer.startsWith(BEARER)) return null
    const app = authenticate.recognize(bearer.slice(BEARER.length), 'status')
    const [, identifier = '', kind, language] = plain
    return app === null ? null : { app: app.username, identifier, language, kind: kind === 'all' ? 'all' : 'latest' }
  }
  return (ctx, next) => {
    const question = read(ctx.req)
    if (question === null) return next()
    const kept = serve.fromCache(question)
    if (kept === null) return serve.ask(question).then((served) => send(ctx, served))
    send(ctx, kept)
    return Promise.resolve()
  }
}

function send(ctx: Context, served: Served): void {
  ctx.respond = false
  const { body } = served
  const head = [...headersOf(served), ['Content-Type', 'application/json'], ['Content-Length', String(body.byteLength)]]
  ctx.res.writeHead(200, head.flat())
  // As text of one byte a character the body joins the head and both leave at once: bytes would be gathered into a message of two parts.
  if (body.byteLength <= COPIED_BYTES_MAX) ctx.res.end(body.toString('latin1'), 'latin1')
  else ctx.res.end(body)
}
