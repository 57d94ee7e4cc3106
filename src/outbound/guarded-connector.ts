import { buildConnector, errors } from 'undici'
import { orWhenAborted } from './deadline.ts'
import type { EgressGuard, EgressRefusal } from './egress-guard.ts'
import { createTlsContext } from './tls-context.ts'

/** A connection that was not opened because it may not be. */
export class EgressRefused extends Error {
  override readonly name = 'EgressRefused'
  readonly reason: EgressRefusal

  constructor(reason: EgressRefusal) {
    super('nothing may be sent to this address')
    this.reason = reason
  }
}

export interface ConnectorOptions {
  /** For one address. */
  readonly timeoutMs: number
  /** A private authority (PEM), trusted besides the well-known ones. */
  readonly ca?: string
}

/**
 * Opens connections only to addresses the guard has just checked. It connects to the very addresses that were checked, so that a name that
 * leads elsewhere a moment later gains nothing; and it is asked for addresses too, which the platform's own `lookup` hook is not.
 */
export function createGuardedConnector(guard: EgressGuard, { timeoutMs, ca }: ConnectorOptions): buildConnector.connector {
  const connect = buildConnector({
    timeout: timeoutMs,
    allowH2: false,
    // Said out loud, because the environment could otherwise turn the check off.
    rejectUnauthorized: true,
    secureContext: createTlsContext(ca),
  })

  return (options, callback) => {
    const { hostname, protocol } = options
    const port = Number(options.port || (protocol === 'https:' ? 443 : 80))

    const fail = (error: Error): void => callback(error, null)
    // One after another: a host with several addresses is reached when any of them answers.
    const connectTo = (addresses: readonly string[], place: number): void => {
      const address = addresses[place]
      if (address === undefined) throw new RangeError('a host that was allowed has an address')
      // The certificate must be the host's, not the address's.
      const servername = options.servername || (address === hostname ? undefined : hostname)
      const pinned = { ...options, hostname: address, ...(protocol === 'https:' && servername !== undefined ? { servername } : {}) }
      connect(pinned, (...[error, socket]) => {
        if (error === null) callback(null, socket)
        else if (place + 1 < addresses.length) connectTo(addresses, place + 1)
        else fail(error)
      })
    }

    orWhenAborted(guard.checkHost(hostname, port), AbortSignal.timeout(timeoutMs), null).then(
      (verdict) => {
        if (verdict === null) fail(new errors.ConnectTimeoutError())
        else if (verdict.ok) connectTo(verdict.addresses, 0)
        else fail(new EgressRefused(verdict.reason))
      },
      (error: unknown) => fail(error instanceof Error ? error : new Error('not resolved')),
    )
  }
}
