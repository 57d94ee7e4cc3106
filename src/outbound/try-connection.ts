import type { FailureReason } from '../domain/delivery/delivery.ts'
import type { Route } from '../domain/delivery/post-request.ts'
import { ANY_HOST, type EgressGuard } from './egress-guard.ts'
import { createGuardedConnector } from './guarded-connector.ts'
import { failureOf } from './send-failure.ts'

/** Why no connection was made. */
export interface NoConnection {
  readonly reason: FailureReason
  /** A code, such as `ECONNREFUSED`. */
  readonly detail: string
}

/** Where to connect, and how deliveries get there. */
export interface Destination {
  readonly url: string
  readonly route: Route
}

export interface TryConnectionOptions {
  readonly guard: EgressGuard
  readonly timeoutMs: number
}

/**
 * Connects as a delivery would, with TLS if the URL says so, and sends nothing. With a proxy it connects to the proxy. Null: the connection
 * was made, and is closed again.
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
      resolve(proxy === undefined || failure.reason === 'tls' ? failure : { ...failure, reason: 'proxy' })
    })
  })
}
