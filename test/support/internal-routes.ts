import { createInternalRoutes, type InternalOptions } from '../../src/http/server/internal.ts'

interface Example {
  readonly path?: string
  readonly type?: string
  readonly body?: string
}

/**
 * How to ask a route for something that it has to write, where that takes more than an empty object about endpoint, delivery or parcel 1001.
 * A route that is not here is asked so: one that needs more must be given an example.
 */
const EXAMPLES: Readonly<Record<string, Example>> = {
  'POST /relay/endpoints': { body: '{"name":"another","url":"http://127.0.0.1:9/"}' },
  'PATCH /relay/endpoints/:id': { body: '{"name":"renamed"}' },
  'POST /relay/endpoints/:id/replay': { body: '{"since":0}' },
  'POST /relay/store/move': { body: '{"to":"sqlite:/dev/null/relay.db"}' },
  'POST /relay/parcels/watch': { type: 'application/x-ndjson', body: '{"identifier":"AB123456789SE"}' },
  // The carrier knows them, and the relay does not yet.
  'GET /v1/status/:identifier/latest': { path: '/v1/status/AB000000001SE/latest' },
  'GET /v1/status/:identifier/all': { path: '/v1/status/AB000000002SE/all' },
}

/** Those that need more than an empty object. */
export const exampleRoutes: readonly string[] = Object.keys(EXAMPLES)

const READS_ONLY = ['POST /auth/token', 'POST /relay/endpoints/:id/test']

/** Every route of the internal listener, by its method and path: found by walking the routers. */
export function internalRoutes(): readonly string[] {
  // No route is run here, so nobody asks what it would call.
  const anything: InternalOptions = Object(new Proxy(() => undefined, { get: () => () => undefined }))
  const layers = createInternalRoutes(anything).flatMap(({ stack }) => stack)
  return layers.flatMap(({ methods, path }) => methods.map((method) => `${method} ${String(path)}`))
}

/** Whether a route changes something. */
export function isWriting(route: string): boolean {
  return route in EXAMPLES || (!/^(GET|HEAD) /.test(route) && !READS_ONLY.includes(route))
}

/** How such a route is asked. */
export function requestOf(route: string): Required<Example> & { readonly method: string } {
  const [method = '', path = ''] = route.split(' ')
  const example = {
    path: path.replace(':identifier', '1001').replace(/:\w+/, '1'),
    type: 'application/json',
    body: '{}',
    ...EXAMPLES[route],
  }
  return { method, ...example }
}
