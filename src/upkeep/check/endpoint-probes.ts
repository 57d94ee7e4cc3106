import type { FailureReason } from '../../core/domain/delivery/delivery.ts'
import type { Route } from '../../core/domain/delivery/delivery-request.ts'
import { isTlsFault, reasonOfCode, tlsMeaning, tlsRemedy } from '../../core/domain/system-reason.ts'
import type { Destination, NoConnection } from '../../core/outbound/try-connection.ts'
import { type CheckLine, failed, ok, skipped, type Verdict, warning } from './check.rules.ts'
import type { Probe } from './manage-check.ts'

export interface EndpointToTry {
  readonly name: string
  readonly url: string
  readonly enabled: boolean
  /** What the running relay knows to be wrong with the endpoint, as a sentence; null: nothing is wrong, or no relay was asked. */
  readonly trouble: string | null
  /** Returns how to reach the endpoint. If a file cannot be used, throws an error that names the setting. */
  readonly route: () => Route
}

/** The endpoints of a relay, and how it connects to them. */
export interface EndpointConnections {
  readonly list: () => Promise<readonly EndpointToTry[]>
  /** Connects to an endpoint. Resolves with the reason if that fails; null: the connection was made. */
  readonly make: (to: Destination) => Promise<NoConnection | null>
}

/** The most endpoints that are tried. More would take minutes. */
const TRIED_MAX = 200

/** Makes the probes that connect to each endpoint, without sending anything. */
export function endpointProbes(endpoints: readonly EndpointToTry[], connect: EndpointConnections['make']): readonly Probe[] {
  const probes = endpoints.slice(0, TRIED_MAX).map(
    (endpoint): Probe => ({
      name: 'endpoint',
      subject: endpoint.name,
      async look() {
        if (!endpoint.enabled) return endpoint.trouble === null ? skipped('It is disabled.') : warning(endpoint.trouble)
        const to = { url: endpoint.url, route: endpoint.route() }
        const verdict = describe(to, await connect(to))
        if (endpoint.trouble === null) return verdict
        return { state: verdict.state === 'ok' ? 'warning' : verdict.state, message: `${verdict.message} ${endpoint.trouble}` }
      },
    }),
  )
  if (endpoints.length <= TRIED_MAX) return probes
  const rest: CheckLine = {
    name: 'endpoint',
    subject: null,
    ...skipped(`${endpoints.length - TRIED_MAX} more were not tried.`),
  }
  return [...probes, { name: 'endpoint', subject: null, look: async () => [rest] }]
}

const REASONS: Partial<Record<FailureReason, string>> = {
  forbidden: 'The relay may not send to this address: list it in delivery.allowNetworks',
  dns: 'Its host has no address',
  connection_refused: 'Nobody listens there',
  reset: 'It closes the connection',
  timeout: 'It does not answer',
  proxy: 'Its proxy cannot be reached',
}

function describe({ url, route }: Destination, failure: NoConnection | null): Verdict {
  const { host } = new URL(url)
  if (failure === null) return ok(route.proxy === undefined ? `${host} takes connections.` : `The proxy to ${host} takes connections.`)
  if (isTlsFault(failure.reason)) return failed(`${host}: ${tlsMeaning(failure.reason, host)}. ${tlsRemedy(failure.reason, 'caFile')}`)
  return failed(`${host}: ${REASONS[failure.reason] ?? `It cannot be reached: ${reasonOfCode(failure.detail)}`}.`)
}
