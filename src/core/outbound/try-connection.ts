import type { FailureReason } from '../domain/delivery/delivery.ts'
import type { Route } from '../domain/delivery/delivery-request.ts'
import { isTlsFault } from '../domain/system-reason.ts'
import { ANY_HOST, type EgressGuard } from './egress-guard.ts'
import { createGuardedConnector } from './guarded-connector.ts'
import { failureOf } from './send-failure.ts'

export interface NoConnection {
  readonly reason: FailureReason
  /** A code, such as `ECONNREFUSED`. */
  readonly detail: string
}

/** A URL to connect to. `route`: the proxy and the TLS settings that deliveries to it use. */
export interface Destination {
  readonly url: string
  readonly route: Route
}

export interface TryConnectionOptions {
  readonly guard: EgressGuard
  readonly timeoutMs: number
}

/**
 * Connects in the same way as a delivery, with TLS if the URL is https, but sends no request. If the route has a proxy, connects to the proxy
 * only. Returns null if it could connect, and closes the connection again.
 */
export async function tryConnection({ url, route }: Destination, { guard, timeoutMs }: TryConnectionOptions): Promise<NoConnection | null> {
  const { proxy, ca, client } = route
  const verdict = proxy === undefined ? guard.checkUrl(url) : guard.checkProxiedUrl(url)
  if (!verdict.ok) return { reason: 'forbidden', detail: verdict.reason }
  const { protocol, hostname, port } = new URL(proxy ?? verdict.origin)
  const connect = createGuardedConnector(
    proxy === undefined ? guard : ANY_HOST,
    proxy === undefined ? { timeoutMs, ca, client } : { timeoutMs, ca },
  )
  return await new Promise((resolve) => {
    connect({ protocol, port, hostname: hostname.replace(/^\[(.*)\]$/, '$1') }, (error, socket) => {
      socket?.destroy()
      if (error === null) return resolve(null)
      const failure = failureOf(error)
      resolve(proxy === undefined || isTlsFault(failure.reason) ? failure : { ...failure, reason: 'proxy' })
    })
  })
}
