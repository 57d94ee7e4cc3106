import { type Dispatcher, Pool, ProxyAgent } from 'undici'
import { createTlsContext } from './tls-context.ts'

export interface ProxiedOptions {
  /** The proxy's own address, with its user and password if it wants them. */
  readonly proxy: string
  /** A private authority (PEM), trusted of the target and of the proxy. */
  readonly ca?: string | undefined
  /** For connecting, and for the proxy's answer to being asked for a tunnel. */
  readonly timeoutMs: number
  /** The most connections at once to one origin; absent: whoever sends bounds them. */
  readonly connections?: number
}

/** Sends through an HTTP proxy: what is https through a tunnel that the proxy cannot see into, what is http by asking the proxy for it. */
export function createProxiedAgent({ proxy, ca, timeoutMs, connections }: ProxiedOptions): Dispatcher {
  // Said out loud, because the environment could otherwise turn the check off.
  const tls = { secureContext: createTlsContext(ca), rejectUnauthorized: true, timeout: timeoutMs }
  return new ProxyAgent({
    uri: proxy,
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
    requestTls: tls,
    proxyTls: tls,
    ...(connections === undefined ? {} : { connections }),
    // A proxy that never says whether there is a tunnel would be waited for long after everybody has left.
    clientFactory: (origin, options) => new Pool(origin, { ...options, headersTimeout: timeoutMs }),
  })
}
