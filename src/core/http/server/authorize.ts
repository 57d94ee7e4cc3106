import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import { AppError } from '../../domain/errors.ts'
import type { App, Authenticate, Scope } from '../../flow/admin/tokens/authenticate.ts'
import { proveConnection } from './connection-slots.ts'
import type { CountFailure } from './failures.ts'
import { headerValues } from './request-headers.ts'

/** A bearer token as in RFC 6750, 2.1, with a limit on its length. The scheme may be in upper or lower case (RFC 9110, 11.1). */
const BEARER = /^bearer ([\w\-.~+/]{1,4096}=*)$/i

/** Returns the calling app. Throws `unauthorized`, `forbidden` or, after too many bad tokens from one address, `too_many_requests`. */
export type Authorize = (ctx: Context, scope: Scope) => Promise<App>

/**
 * Watches whether the token of a long request, such as a stream, still grants the scope. Calls `end` when the token no longer grants it.
 * Resolves with a function that ends the watch.
 */
export type HoldAccess = (ctx: Context, scope: Scope, end: () => void) => Promise<() => void>

export function createAuthorize(authenticate: Pick<Authenticate, 'authorize'>, countFailure: CountFailure): Authorize {
  return async (ctx, scope) => {
    try {
      const app = await authenticate.authorize(tokenOf(ctx), scope)
      proveConnection(ctx.req)
      return app
    } catch (error) {
      throw error instanceof AppError && error.code === 'unauthorized' ? await countFailure(ctx.req, error) : error
    }
  }
}

export function createHoldAccess(authenticate: Pick<Authenticate, 'hold'>): HoldAccess {
  return async (ctx, scope, end) => await authenticate.hold(tokenOf(ctx), scope, end)
}

/** Returns the token. Throws `unauthorized` for no or several `Authorization` headers. Node's `headers` would show only the first of several. */
function tokenOf(ctx: Context): string {
  const [header, ...more] = headerValues(ctx.req, 'authorization')
  const token = header === undefined || more.length > 0 ? undefined : BEARER.exec(header)?.[1]
  if (token === undefined) throw new AppError('unauthorized', 'Send one Authorization header with a bearer token.')
  return token
}

/** Returns a controller that aborts when the client disconnects. If the client is gone already, no event follows, so it aborts at once. */
export function leavingOf(res: ServerResponse): AbortController {
  const leaving = new AbortController()
  if (res.closed) leaving.abort()
  else res.once('close', () => leaving.abort())
  return leaving
}
