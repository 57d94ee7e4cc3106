import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Middleware } from 'koa'
import type { Authenticate } from '../flow/authenticate.ts'
import type { Serve } from '../flow/serve.ts'
import type { Served } from '../flow/served.ts'
import { headerValues } from './header-values.ts'
import { headersOf } from './status.routes.ts'

/** How nearly every app writes its question. */
const PLAIN = /^\/v1\/status\/([A-Za-z0-9]{4,40})\/(all|latest)(?:\?language=([A-Za-z]{2,8}))?$/
const BEARER = 'Bearer '

export interface AtHandOptions {
  readonly serve: Pick<Serve, 'atHand'>
  readonly authenticate: Pick<Authenticate, 'recognize'>
}

/**
 * A short way for the question that is asked most: plainly written, by an app whose token is remembered, with the answer kept. Routing,
 * waiting for promises and setting headers one by one cost twice what such an answer costs. All else is left to the status routes, which
 * would have said the same.
 */
export function answersAtHand({ serve, authenticate }: AtHandOptions): Middleware {
  const find = (req: IncomingMessage): Served | null => {
    if (req.method !== 'GET' || req.headers['if-none-match'] !== undefined) return null
    const plain = PLAIN.exec(req.url ?? '')
    const [bearer, ...more] = headerValues(req, 'authorization')
    if (plain === null || bearer === undefined || more.length > 0 || !bearer.startsWith(BEARER)) return null
    const app = authenticate.recognize(bearer.slice(BEARER.length), 'status')
    const [, identifier = '', kind, language] = plain
    if (app === null) return null
    return serve.atHand({ app: app.username, identifier, language, kind: kind === 'all' ? 'all' : 'latest' })
  }
  return (ctx, next) => {
    const served = find(ctx.req)
    if (served === null) return next()
    ctx.respond = false
    send(ctx.res, served)
    return Promise.resolve()
  }
}

function send(res: ServerResponse, served: Served): void {
  const { body } = served
  const head = [...headersOf(served), ['Content-Type', 'application/json'], ['Content-Length', String(body.byteLength)]]
  res.writeHead(200, head.flat())
  // As text of one byte a character the body joins the head and both leave at once: bytes would be gathered into a message of two parts.
  res.end(body.toString('latin1'), 'latin1')
}
