import Router from '@koa/router'
import { AppError } from '../../domain/errors.ts'
import type { Authenticate } from '../../flow/admin/authenticate.ts'
import { proveConnection } from '../server/connection-places.ts'
import type { CountFailure, VisitorOf } from '../server/failures.ts'
import { readJson } from '../server/json-body.ts'

const BODY_BYTES_MAX = 16 * 1024
const PASSWORD_LENGTH_MAX = 1024

export interface TokenRouteOptions {
  readonly authenticate: Pick<Authenticate, 'issueToken'>
  readonly visitorOf: VisitorOf
  readonly countFailure: CountFailure
}

/** POST /auth/token, in exactly the carrier's shape. */
export function tokenRoutes({ authenticate, visitorOf, countFailure }: TokenRouteOptions): Router {
  const router = new Router({ strict: true, sensitive: true })
  router.post('/auth/token', readJson(BODY_BYTES_MAX), async (ctx) => {
    const credentials = readCredentials(ctx.request.body)
    try {
      ctx.body = JSON.stringify({ token: await authenticate.issueToken(credentials, visitorOf(ctx.req, credentials.username)) })
      proveConnection(ctx.req)
    } catch (error) {
      throw error instanceof AppError && error.code === 'unauthorized' ? await countFailure(ctx.req, error) : error
    }
    ctx.set('Content-Type', 'application/json')
    ctx.set('Cache-Control', 'no-store')
  })
  return router
}

function readCredentials(body: unknown): { readonly username: string; readonly password: string } {
  if (typeof body === 'object' && body !== null && 'username' in body && 'password' in body) {
    const { username, password } = body
    if (typeof username === 'string' && typeof password === 'string' && password.length <= PASSWORD_LENGTH_MAX)
      return { username, password }
  }
  throw new AppError('bad_request', 'Send a JSON object with the strings "username" and "password".')
}
