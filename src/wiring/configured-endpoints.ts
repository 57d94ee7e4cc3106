import type { Config } from '../config/config.ts'
import { readCertificates } from '../config/named-file.ts'
import type { ConfiguredEndpoint, EndpointState } from '../domain/delivery/endpoint-state.ts'
import type { Route } from '../domain/delivery/post-request.ts'
import type { RouteOf } from '../flow/delivery/send-delivery.ts'
import type { Clock } from '../flow/ports.ts'
import type { WriteSide } from '../flow/write-side.ts'

/** The endpoints of the latest config, and how to reach them. */
export interface ConfiguredEndpoints {
  readonly routeOf: RouteOf
  /** The key of an endpoint that the config defines. */
  keyOf(state: Pick<EndpointState, 'origin' | 'endpoint'>): string | undefined
  /** How many attempts may be under way at an endpoint. */
  perEndpoint(): number
  /** Replaces them by those of another config. Rejects, with nothing changed, if it cannot. */
  replace(next: Config): Promise<void>
}

export interface ConfiguredEndpointsPorts {
  readonly write: Pick<WriteSide, 'syncEndpoints'>
  readonly clock: Pick<Clock, 'now'>
}

const DIRECT: Route = {}

export async function openConfiguredEndpoints(config: Config, { write, clock }: ConfiguredEndpointsPorts): Promise<ConfiguredEndpoints> {
  let current = config
  let routes = readRoutes(config)
  const sync = (next: Config) => write.syncEndpoints(next.endpoints.map(settingsOf), clock.now(), next.operator?.url ?? null)
  await sync(config)
  return {
    routeOf: ({ origin, endpoint }) => (origin === 'config' ? routes.get(endpoint.name) : undefined) ?? DIRECT,
    keyOf({ origin, endpoint }) {
      const configured = origin === 'operator' ? current.operator : current.endpoints.find(({ name }) => name === endpoint.name)
      return configured?.sharedKey.reveal()
    },
    perEndpoint: () => current.delivery.perEndpoint,
    async replace(next) {
      const before = { current, routes }
      const nextRoutes = readRoutes(next)
      // Keys first, because deliveries to a new endpoint begin as soon as it is stored.
      current = next
      routes = nextRoutes
      try {
        await sync(next)
      } catch (error) {
        current = before.current
        routes = before.routes
        throw error
      }
    },
  }
}

function settingsOf(endpoint: Config['endpoints'][number]): ConfiguredEndpoint {
  const { name, url, enabled, signature, filters, backfill, ratePerSecond, concurrency, scheduleMs, from } = endpoint
  return { name, url, enabled, signature, filters, backfill, ratePerSecond, concurrency, scheduleMs, from }
}

/** How to reach the endpoints of the config, by name. Throws an error that names the setting if a file cannot be used. */
function readRoutes({ endpoints }: Config): ReadonlyMap<string, Route> {
  const routeOf = ({ name, proxy, caFile }: Config['endpoints'][number]): Route => ({
    ...(proxy === null ? {} : { proxy: proxy.reveal() }),
    ...(caFile === null ? {} : { ca: readCertificates(`endpoints: "${name}": caFile`, caFile) }),
  })
  return new Map(endpoints.map((endpoint) => [endpoint.name, routeOf(endpoint)]))
}
