import type { IncomingMessage } from 'node:http'
import type { Context, Middleware } from 'koa'
import type { Authenticate } from '../../flow/admin/tokens/authenticate.ts'
import type { Question, Served } from '../../flow/history/answer.ts'
import type { Serve } from '../../flow/history/serve.ts'
import { proveConnection } from '../server/connection-slots.ts'
import { headerValues } from '../server/header-values.ts'
import { headersOf } from './status.routes.ts'

/** Nearly every request to the pull API has this form. */
const PLAIN = /^\/v1\/status\/([A-Za-z0-9]{4,40})\/(all|latest)(?:\?language=([A-Za-z]{2,8}))?$/
const BEARER = 'Bearer '
/** Nearly every answer is smaller than this. Larger answers are sent without a copy, so that slow readers share the cached bytes. */
const COPIED_BYTES_MAX = 16 * 1024

export interface PlainRequestOptions {
  readonly serve: Pick<Serve, 'ask' | 'fromCache'>
  readonly authenticate: Pick<Authenticate, 'recognize'>
}

/**
 * A fast path for nearly all requests: those in plain form, from an app whose token was verified before. It avoids routing, promises and
 * setting headers one by one. Together they cost twice as much as a cached answer. Other requests go to the status routes, which give equal answers.
 */
export function plainRequests({ serve, authenticate }: PlainRequestOptions): Middleware {
  const read = (req: IncomingMessage): Question | null => {
    if (req.method !== 'GET' || req.headers['if-none-match'] !== undefined) return null
    const plain = PLAIN.exec(req.url ?? '')
    const [bearer, ...more] = headerValues(req, 'authorization')
    if (plain === null || bearer === undefined || more.length > 0 || !bearer.startsWith(BEARER)) return null
    const app = authenticate.recognize(bearer.slice(BEARER.length), 'status')
    if (app === null) return null
    proveConnection(req)
    const [, identifier = '', kind, language] = plain
    return { app: app.username, identifier, language, kind: kind === 'all' ? 'all' : 'latest' }
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
  // Node adds a latin1 text to the head and sends both in one write. A buffer would need a second write.
  if (body.byteLength <= COPIED_BYTES_MAX) ctx.res.end(body.toString('latin1'), 'latin1')
  else ctx.res.end(body)
}
