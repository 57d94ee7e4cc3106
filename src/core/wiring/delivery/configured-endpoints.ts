import { X509Certificate } from 'node:crypto'
import type { Config } from '../../config/config.ts'
import { readCertificates } from '../../config/named-file.ts'
import type { Route } from '../../domain/delivery/delivery-request.ts'
import { type FixedHeaders, fingerprintSecrets } from '../../domain/delivery/endpoint-keys.ts'
import { type ConfiguredEndpoint, type ConfiguredSecretsMark, type EndpointState, maskPath } from '../../domain/delivery/endpoint-state.ts'
import type { OperatorMessage } from '../../domain/delivery/operator-event.ts'
import type { ConfiguredSecrets } from '../../flow/delivery/endpoint-vault.ts'
import { type ClientCertificate, readTlsPair } from '../certificates.ts'
import type { Relay } from '../relay.ts'
import { replicaConfigOf } from '../replica-name.ts'

type Known = Pick<EndpointState, 'origin' | 'endpoint'>
type OperatorFormat = NonNullable<Config['operator']>['format']

/** Writes an operator event as a message to a chat or notification service. `portalUrl`: to which the message links. Null: it is no operator event. */
export type FormatOperatorEvent = (
  event: Uint8Array,
  to: { readonly format: Exclude<OperatorFormat, 'relay'>; readonly portalUrl: string | null },
) => OperatorMessage | null

type Parts = Pick<Relay, 'write' | 'replicas' | 'clock' | 'log'> & { readonly formatOperatorEvent: FormatOperatorEvent }

/** The most milliseconds that count as passed between two calls of `removeUnnamed`. After a longer gap the machine may have slept. */
const SEEN_MAX_MS = 120_000

const DIRECT: Route = {}

/** Opens the endpoints of the current config, and how to reach them. */
export async function openConfiguredEndpoints(config: Config, ports: Parts) {
  const { write, replicas, clock } = ports
  let current = config
  /** The previous config. Its keys are still needed: other replicas may deliver to its endpoints until they know the new config. */
  let former = config
  let routes = readRoutes(config)
  const sync = (next: Config, isStarting = true, before = next) =>
    write.syncEndpoints(
      next.endpoints.map((endpoint) => ({ ...settingsOf(endpoint), ...secretsMark(endpoint, before) })),
      clock.now(),
      next.operator === null ? null : maskPath(next.operator.url.reveal()),
      isStarting,
    )
  await sync(config)
  return {
    routeOf: ({ origin, endpoint }: Known): Route =>
      (origin === 'config' ? routes.get(endpoint.name) : origin === 'operator' ? operatorRoute(current) : undefined) ?? DIRECT,
    operatorMessage(event: Uint8Array) {
      const { operator, portal } = current
      if (operator === null || operator.format === 'relay') return null
      return ports.formatOperatorEvent(event, { format: operator.format, portalUrl: portal.enabled ? portal.publicUrl : null })
    },
    /** Returns the secrets of an endpoint that the config defines; undefined: the config does not define this endpoint. */
    secretsOf: ({ origin, endpoint: { name } }: Known) => secretsIn(current, origin, name) ?? secretsIn(former, origin, name),
    /** See `EndpointQueriesPorts`. */
    keyOriginOf: ({ origin, endpoint: { name } }: Known) =>
      origin === 'config' ? (current.endpoints.find((defined) => defined.name === name)?.sharedKey.from ?? null) : null,
    trustedHeader: () => current.portal.trustedHeader,
    perEndpoint: () => current.delivery.perEndpoint,
    /** Lists the certificates that the relay shows to endpoints of the config. */
    clientCertificates: () =>
      [...routes].flatMap(([endpoint, { client }]) => (client === undefined ? [] : [expiryOf(endpoint, client.cert)])),
    /** Resumes endpoints of this config that another replica has paused because this replica seemed to be dead. */
    restore: () => sync(current, false),
    /**
     * If this replica is the janitor, pauses endpoints that no config names any more, and removes them after `delivery.removeAfter`. Call it
     * regularly.
     */
    removeUnnamed: createRemoveUnnamed(ports, () => current),
    /** Replaces the endpoints by those of another config. If it rejects, nothing has changed. */
    async replace(next: Config) {
      const before = { current, former, routes }
      const [known, wanted] = [replicaConfigOf(current), replicaConfigOf(next)]
      const nextRoutes = readRoutes(next)
      // Switch before anything is stored, because deliveries to a new endpoint begin as soon as the endpoint is stored.
      former = current
      current = next
      routes = new Map([...routes, ...nextRoutes])
      try {
        // Publish the new at-rest keys before the endpoints, because another replica may refuse the keys. Until the new endpoints are stored,
        // publish the endpoints of both configs, because the janitor pauses an endpoint that no config names.
        await replicas.configure({
          ...known,
          atRestKeys: wanted.atRestKeys,
          endpoints: [...new Set([...known.endpoints, ...wanted.endpoints])],
        })
        await sync(next, true, before.current)
        await replicas.configure(wanted)
        // This pauses endpoints that only the previous config has named.
        await sync(next)
        routes = nextRoutes
      } catch (error) {
        current = before.current
        former = before.former
        routes = before.routes
        // If this fails too, the other replicas still see the endpoints of both configs. That does no harm.
        await replicas.configure(known).catch(() => undefined)
        throw error
      }
    },
  }
}

function createRemoveUnnamed(
  { write, replicas, clock, log }: Omit<Parts, 'formatOperatorEvent'>,
  current: () => Config,
): () => Promise<void> {
  let lookedAtMs: number | null = null
  return async () => {
    const beforeMs = lookedAtMs
    const atMs = clock.monotonic()
    lookedAtMs = replicas.holds('janitor') ? atMs : null
    if (lookedAtMs === null) return
    const passedMs = beforeMs === null ? 0 : Math.round(Math.min(SEEN_MAX_MS, atMs - beforeMs))
    const { removeAfterMs } = current().delivery
    const names = replicaConfigOf(current()).endpoints
    const removed = await write.removeUnnamedEndpoints({ names, nowMs: clock.now(), passedMs, removeAfterMs })
    if (removed.length > 0)
      log.warn(
        { endpoints: removed, removeAfterMs },
        'endpoints that no config has named for `delivery.removeAfter` were removed; their waiting deliveries are cancelled',
      )
  }
}

function secretsIn(config: Config, origin: EndpointState['origin'], endpointName: string): ConfiguredSecrets | undefined {
  if (origin === 'operator') {
    const sharedKey = config.operator?.sharedKey ?? null
    return sharedKey === null ? undefined : { sharedKey: sharedKey.reveal(), headers: {} }
  }
  const defined = config.endpoints.find(({ name }) => name === endpointName)
  if (defined === undefined) return undefined
  return { sharedKey: defined.sharedKey.reveal(), headers: revealed(defined.headers) }
}

function revealed(headers: Config['endpoints'][number]['headers']): FixedHeaders {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.reveal()]))
}

/** Fingerprints the secrets of an endpoint, and tells whether they differ from those in the previous config (`before`). */
function secretsMark({ name, sharedKey, headers }: Config['endpoints'][number], before: Config): ConfiguredSecretsMark {
  const secretsFingerprint = fingerprintSecrets(sharedKey.reveal(), revealed(headers))
  const was = secretsIn(before, 'config', name)
  return { secretsFingerprint, hasNewSecrets: was !== undefined && fingerprintSecrets(was.sharedKey, was.headers) !== secretsFingerprint }
}

/** Leaves out what the store must not hold: secrets, and how to reach the endpoint. */
function settingsOf(endpoint: Config['endpoints'][number]): ConfiguredEndpoint {
  const { sharedKey: _key, headers, proxy: _proxy, caFile: _ca, clientCert: _cert, ...settings } = endpoint
  return { ...settings, headers: Object.keys(headers) }
}

/** Returns how to reach the operator's address; undefined: the config names no operator. */
export function operatorRoute({ operator }: Pick<Config, 'operator'>): Route | undefined {
  return operator === null ? undefined : { url: operator.url.reveal(), isOperator: true }
}

function expiryOf(endpoint: string, cert: string): ClientCertificate {
  return { endpoint, untilMs: Date.parse(new X509Certificate(cert).validTo) }
}

/** Reads how to reach each endpoint of the config, by name. If a file cannot be used, throws an error that names the setting. */
function readRoutes({ endpoints }: Config): ReadonlyMap<string, Route> {
  return new Map(endpoints.map((endpoint) => [endpoint.name, readRoute(endpoint)]))
}

type ConfiguredRoute = Pick<Config['endpoints'][number], 'name' | 'proxy' | 'caFile' | 'clientCert'>

/** Reads how to reach an endpoint of the config. If a file cannot be used, throws an error that names the setting. */
export function readRoute({ name, proxy, caFile, clientCert }: ConfiguredRoute): Route {
  const setting = `endpoints: "${name}"`
  return {
    ...(proxy === null ? {} : { proxy: proxy.reveal() }),
    ...(caFile === null ? {} : { ca: readCertificates(`${setting}: caFile`, caFile) }),
    ...(clientCert === null ? {} : { client: pemOf(readTlsPair(`${setting}: clientCert`, clientCert)) }),
  }
}

function pemOf({ cert, key }: { readonly cert: Buffer; readonly key: Buffer }) {
  return { cert: cert.toString(), key: key.toString() }
}
