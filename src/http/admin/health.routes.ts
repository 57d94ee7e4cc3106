import Router from '@koa/router'
import type { Middleware } from 'koa'
import type { Readiness } from '../../flow/admin/readiness.ts'
import { createSingleFlight } from '../../flow/single-flight.ts'
import { EdgeError } from '../server/errors.ts'
import { presentJson } from '../server/present.ts'

interface MetricsText {
  readonly contentType: string
  readonly body: string
}

export interface OperationRouteOptions {
  readonly readiness: () => Promise<Readiness>
  readonly metrics: () => Promise<MetricsText>
}

/** GET and HEAD /healthz, on both listeners: the process is alive. It does not touch the store or the carrier. */
export function healthRoute(): Middleware {
  return async (ctx, next) => {
    if (ctx.path !== '/healthz') {
      await next()
      return
    }
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD')
      throw new EdgeError('method_not_allowed', 'Allowed here: GET, HEAD.', { allow: 'GET, HEAD' })
    presentJson(ctx, 200, { status: 'ok' })
  }
}

/** GET /readyz and GET /metrics, on the internal listener. */
export function operationRoutes({ readiness, metrics }: OperationRouteOptions): Router {
  const router = new Router({ strict: true, sensitive: true })
  const share = createSingleFlight<{ readonly contentType: string; readonly body: Buffer }>()
  router.get('/readyz', async (ctx) => {
    const { ready, reasons, notes } = await readiness()
    presentJson(ctx, ready ? 200 : 503, { status: ready ? 'ready' : 'not_ready', reasons, ...notes })
  })
  router.get('/metrics', async (ctx) => {
    // Rendering takes milliseconds, so requests at the same time share one body.
    const { contentType, body } = await share('metrics', async () => {
      const text = await metrics()
      return { ...text, body: Buffer.from(text.body) }
    })
    ctx.body = body
    ctx.set('Content-Type', contentType)
    ctx.set('Cache-Control', 'no-store')
  })
  return router
}
