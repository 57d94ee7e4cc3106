import { connect as connectTcp, type Socket } from 'node:net'
import { buildConnector, errors } from 'undici'
import { orWhenAborted } from './deadline.ts'
import type { EgressGuard, EgressRefusal } from './egress-guard.ts'
import { createTlsContext } from './tls-context.ts'

/** A connection that was refused by the guard. */
export class EgressRefused extends Error {
  override readonly name = 'EgressRefused'
  readonly reason: EgressRefusal

  constructor(reason: EgressRefusal) {
    super('nothing may be sent to this address')
    this.reason = reason
  }
}

export interface ConnectorOptions {
  /** The time limit per address. */
  readonly timeoutMs: number
  /** A private authority (PEM), trusted as well as the public ones. */
  readonly ca?: string
}

/**
 * Opens connections only to addresses that the guard has just checked. It connects to exactly those addresses, so that a name that changes
 * afterwards gains nothing. It also checks hosts given as addresses, which the platform's `lookup` hook does not see.
 */
export function createGuardedConnector(guard: EgressGuard, { timeoutMs, ca }: ConnectorOptions): buildConnector.connector {
  const connect = buildConnector({
    timeout: timeoutMs,
    allowH2: false,
    // Explicit, because an environment variable could turn the check off.
    rejectUnauthorized: true,
    secureContext: createTlsContext(ca),
  })

  return (options, callback) => {
    const { hostname, protocol } = options
    const port = Number(options.port || (protocol === 'https:' ? 443 : 80))

    const fail = (error: Error): void => callback(error, null)
    // Tries the addresses in turn: a host is reached if any of them answers.
    const connectTo = (addresses: readonly string[], place: number): void => {
      const address = addresses[place]
      if (address === undefined) throw new RangeError('a host that was allowed has an address')
      // The certificate must be that of the host, not of the address.
      const servername = options.servername || (address === hostname ? undefined : hostname)
      const beneath = protocol === 'https:' ? connectTcp({ host: address, port }) : null
      const secured = beneath === null ? {} : { httpSocket: beneath, ...(servername === undefined ? {} : { servername }) }
      connect({ ...options, hostname: address, ...secured }, (...[error, socket]) => {
        if (error === null) callback(null, resetWhenAborted(socket, beneath ?? socket))
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

/**
 * When a post that runs on it is aborted, a connection is reset, not closed: the system would go on sending for minutes what was written,
 * and an endpoint could get it after what another replica has sent since. `beneath` is the connection of the network, which TLS may run on.
 */
function resetWhenAborted(socket: Socket, beneath: Socket): Socket {
  const destroy = socket.destroy.bind(socket)
  socket.destroy = (error) => {
    if (socket.destroyed || !isAbort(error)) return destroy(error)
    // A reset destroys without an error, and the client counts on its own.
    socket.destroy = () => destroy(error)
    beneath.resetAndDestroy()
    return destroy(error)
  }
  return socket
}

/** The client's error for the connection of a request that was aborted; one that is not in use ends with others. */
const isAbort = (error: Error | undefined): boolean => error instanceof errors.InformationalError && error.message === 'aborted'
