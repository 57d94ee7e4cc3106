import { type Dispatcher, Pool, ProxyAgent } from 'undici'
import type { CreatePool } from './connection-use.ts'
import { createTlsContext, type TlsIdentity } from './guarded-connector.ts'

/** The certificate authority `ca` is trusted for the target and for the proxy. Only the target gets the client certificate. */
export interface ProxiedOptions extends TlsIdentity {
  /** The URL of the proxy, with user and password if it needs them. */
  readonly proxy: string
  /** The time limit for connecting, and for the proxy's answer to the request for a tunnel. */
  readonly timeoutMs: number
  /** The most connections per origin. Absent: no limit here, because the caller limits them. */
  readonly connections?: number
  /** Makes the pool of connections to a target. */
  readonly createPool: CreatePool
}

/** Creates a dispatcher that sends through an HTTP proxy: https through a tunnel that the proxy cannot read, http as requests to the proxy. */
export function createProxiedAgent({ proxy, ca, client, timeoutMs, connections, createPool }: ProxiedOptions): Dispatcher {
  // Without `rejectUnauthorized`, the environment variable `NODE_TLS_REJECT_UNAUTHORIZED` could turn the check of certificates off.
  const checked = { rejectUnauthorized: true, timeout: timeoutMs }
  const proxyTls = { ...checked, secureContext: createTlsContext({ ca }) }
  return new ProxyAgent({
    uri: proxy,
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
    requestTls: client === undefined ? proxyTls : { ...checked, secureContext: createTlsContext({ ca, client }) },
    proxyTls,
    ...(connections === undefined ? {} : { connections }),
    factory: createPool,
    // Without this limit undici would wait for a silent proxy long after the callers gave up.
    clientFactory: (origin, options) => new Pool(origin, { ...options, headersTimeout: timeoutMs }),
  })
}
