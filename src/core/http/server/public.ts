import type { RequestListener } from 'node:http'
import type { Context, Middleware } from 'koa'
import { type MisdirectedPorts, noteMisdirected, receivePushes, type WebhookPorts } from '../ingest/webhook.ts'
import { EdgeError } from './errors.ts'
import { type AppOptions, createListener } from './listener.ts'
import { presentJson } from './present.ts'

export interface PublicOptions extends AppOptions, WebhookPorts, MisdirectedPorts {}

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
