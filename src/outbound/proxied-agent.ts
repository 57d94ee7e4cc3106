import { type Dispatcher, Pool, ProxyAgent } from 'undici'
import { createTlsContext, type TlsIdentity } from './tls-context.ts'

/** The authority is trusted for the target and for the proxy; only the target is shown the client certificate. */
export interface ProxiedOptions extends TlsIdentity {
  /** The URL of the proxy, with user and password if it needs them. */
  readonly proxy: string
  /** The time limit for connecting, and for the proxy's answer to the request for a tunnel. */
  readonly timeoutMs: number
  /** The maximum of connections per origin; absent: the caller limits them. */
  readonly connections?: number
  /** Makes the pools of the targets; absent: the client makes its default pools. */
  readonly createPool?: (origin: string | URL, options: Pool.Options) => Dispatcher
}

/** Sends through an HTTP proxy: https through a tunnel that the proxy cannot read, http as requests to the proxy. */
export function createProxiedAgent({ proxy, ca, client, timeoutMs, connections, createPool }: ProxiedOptions): Dispatcher {
  // Explicit, because an environment variable could turn the check off.
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
    ...(createPool === undefined ? {} : { factory: createPool }),
    // Without this limit the client would wait for a proxy that never answers, long after all callers have left.
    clientFactory: (origin, options) => new Pool(origin, { ...options, headersTimeout: timeoutMs }),
  })
}
