import type { RequestListener } from 'node:http'
import type { Middleware } from 'koa'
import { createShowDocs, type DocsOptions } from '../console/portal/docs/docs.ts'
import { createPortal, type PagesOf, type PortalOptions } from '../console/portal/portal.ts'
import type { Authenticate } from '../core/flow/admin/tokens/authenticate.ts'
import type { Serve } from '../core/flow/history/serve.ts'
import { plainRequests } from '../core/http/history/status.routes.ts'
import { createAuthorize, createHoldAccess } from '../core/http/server/authorize.ts'
import { EdgeError } from '../core/http/server/errors.ts'
import { type AppOptions, createListener } from '../core/http/server/listener.ts'
import { WINGS } from '../wings.ts'
import { createInternalRouter, type InternalPorts, loadRoutes } from './routes.ts'

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

const NO_PAGES: PagesOf<unknown> = () => []

/** Creates the listener for apps and operators. It serves the carrier's own API, /relay, health and metrics, and the portal. */
export async function createInternalListener(options: InternalOptions): Promise<RequestListener> {
  const { authenticate, countFailure } = options
  const [{ internal, capabilities }, offered] = await Promise.all([
    loadRoutes(),
    Promise.all(WINGS.map(async ({ pages }) => (await pages?.()) ?? NO_PAGES)),
  ])
  const authorize = createAuthorize(authenticate, countFailure)
  const ports = {
    ...options,
    overview: options.portal.overview,
    clock: options.portal.clock,
    authorize,
    holdAccess: createHoldAccess(authenticate),
    showDocs: createShowDocs({ ...options.portal, readDocs: options.readDocs, capabilities }),
  }
  return createListener(options, (app) => {
    app.use(plainRequests(options)).use(continueAlways).use(createInternalRouter(ports, internal).routes())
    const parts = { ...options, ...options.portal }
    const portal = createPortal(
      parts,
      offered.flatMap((pagesOf) => pagesOf(parts)),
    )
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
