import type { RequestListener } from 'node:http'
import type { Middleware } from 'koa'
import { createInternalRouter, type InternalPorts } from '../../../assembly/routes.ts'
import { createShowDocs, type DocsOptions } from '../../../console/portal/docs/docs.ts'
import { createPortal, type PortalOptions } from '../../../console/portal/portal.ts'
import type { Authenticate } from '../../flow/admin/tokens/authenticate.ts'
import type { Serve } from '../../flow/history/serve.ts'
import { plainRequests } from '../history/status.routes.ts'
import { createAuthorize, createHoldAccess } from './authorize.ts'
import { EdgeError } from './errors.ts'
import { type AppOptions, createListener } from './listener.ts'

export interface InternalOptions
  extends AppOptions,
    Omit<InternalPorts, 'authorize' | 'holdAccess' | 'showDocs' | 'overview' | 'clock'>,
    Pick<DocsOptions, 'readDocs'> {
  readonly authenticate: Authenticate
  readonly serve: Pick<Serve, 'ask' | 'fromCache'>
  readonly portal: Pick<
    PortalOptions,
    'overview' | 'live' | 'config' | 'settings' | 'sessions' | 'formIds' | 'giveOnce' | 'readAsset' | 'version' | 'clock'
  >
}

/** Creates the listener for apps and operators. It serves the carrier's own API, /relay, health and metrics, and the portal. */
export function createInternalListener(options: InternalOptions): RequestListener {
  const { authenticate, countFailure } = options
  const authorize = createAuthorize(authenticate, countFailure)
  const router = createInternalRouter({
    ...options,
    overview: options.portal.overview,
    clock: options.portal.clock,
    authorize,
    holdAccess: createHoldAccess(authenticate),
    showDocs: createShowDocs({ ...options.portal, readDocs: options.readDocs }),
  })
  return createListener(options, (app) => {
    app.use(plainRequests(options)).use(continueAlways).use(router.routes())
    const portal = createPortal({ ...options, ...options.portal })
    app.use(portal.routes).use(portal.lost).use(methodNotAllowed())
  })
}

/** Answers every `Expect: 100-continue` with 100 at once, even if the route will then refuse the request without reading its body. */
const continueAlways: Middleware = async (ctx, next) => {
  if (ctx.get('Expect').toLowerCase() === '100-continue') ctx.res.writeContinue()
  await next()
}

/** Runs after the routers. If the path of a request exists only with other methods, throws `method_not_allowed`, even for OPTIONS or TRACE. */
function methodNotAllowed(): Middleware {
  return async (ctx, next) => {
    const matched: unknown = ctx.matched
    const allowed = Array.isArray(matched) ? matched.flatMap(methodsOf) : []
    if (allowed.length > 0 && !allowed.includes(ctx.method)) {
      const allow = [...new Set(allowed)].sort().join(', ')
      throw new EdgeError('method_not_allowed', `Allowed here: ${allow}.`, { allow })
    }
    await next()
  }
}

function methodsOf(layer: unknown): readonly string[] {
  if (typeof layer !== 'object' || layer === null || !('methods' in layer) || !Array.isArray(layer.methods)) return []
  return layer.methods.filter((method) => typeof method === 'string')
}
