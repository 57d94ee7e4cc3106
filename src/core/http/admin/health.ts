import type { Context, Middleware } from 'koa'
import { EdgeError } from '../server/errors.ts'
import { presentJson } from '../server/present.ts'

/** Answers GET and HEAD /healthz: the process is alive. Does not touch the store or the carrier. */
export function answerHealth(ctx: Context): void {
  presentJson(ctx, 200, { status: 'ok' })
}

/** Serves GET and HEAD /healthz on the public listener, which has no router. */
export function healthRoute(): Middleware {
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
