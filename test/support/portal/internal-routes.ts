import type { RouteRow } from '../../../src/core/http/server/route.ts'
import { INTERNAL_ROUTES, ROUTES } from '../relay/routes.ts'

/** The POST routes whose examples change nothing in the store. Some examples ask for a dry run. */
const READS_ONLY = ['POST /auth/token', 'POST /relay/reload', 'POST /relay/endpoints/:id/test', 'POST /relay/inbox/reprocess'].concat(
  'POST /relay/retention',
  'POST /relay/watchdogs/try',
  'POST /relay/parcels/forget',
  'POST /relay/inbox/dismiss',
  'POST /relay/operator/test',
  'POST /relay/operator/enable',
)
/** These ask the carrier about parcels that the relay does not know, and record its answer. */
const WRITES_TOO = ['GET /v1/status/:identifier/latest', 'GET /v1/status/:identifier/all']

/** Returns the name of a route: `GET /relay/jobs/:id`. */
export function nameOf({ method, path }: Pick<RouteRow, 'method' | 'path'>): string {
  return `${method.toUpperCase()} ${path}`
}

export function internalRoutes(): readonly string[] {
  return INTERNAL_ROUTES.map(nameOf)
}

/** Whether the example of a route changes something in the store. */
export function isWriting(route: string): boolean {
  return WRITES_TOO.includes(route) || (!route.startsWith('GET ') && !READS_ONLY.includes(route))
}

export function requestOf(route: string) {
  const row = ROUTES.find((each) => nameOf(each) === route)
  if (row === undefined) throw new Error(`there is no route ${route}`)
  const { method, path, example, body } = row
  const values = new Map<string, string>(Object.entries(example.path))
  const filled = path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(values.get(name) ?? ''))
  const [sent] = Object.entries(body?.content ?? {})
  return {
    method: method.toUpperCase(),
    path: example.query === undefined ? filled : `${filled}?${example.query}`,
    type: sent?.[0] ?? 'application/json',
    body: sent === undefined ? null : typeof sent[1].example === 'string' ? sent[1].example : JSON.stringify(sent[1].example),
  }
}
