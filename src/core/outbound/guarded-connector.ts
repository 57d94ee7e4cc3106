import { connect as connectTcp, type Socket } from 'node:net'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import { buildConnector, errors } from 'undici'
import type { ClientCertificate } from '../domain/delivery/delivery-request.ts'
import { orWhenAborted, type StartTimer, startRealTimer } from './deadline.ts'
import type { EgressGuard, EgressRefusal } from './egress-guard.ts'

export class EgressRefused extends Error {
  override readonly name = 'EgressRefused'
  readonly reason: EgressRefusal

  constructor(reason: EgressRefusal) {
    super('nothing may be sent to this address')
    this.reason = reason
  }
}

export interface ConnectorOptions extends TlsIdentity {
  /** The time limit for resolving the host, and for connecting to each address. */
  readonly timeoutMs: number
  readonly startTimer?: StartTimer
}

const KEEP_ALIVE_MS = 60_000

/**
 * Creates a connector that opens connections only to addresses that it has just checked. It does not resolve the name again, so an attacker
 * gains nothing by changing the name's address after the check. A check in Node's `lookup` hook would not do: the hook is not called for a host
 * that is an address. Several addresses are tried a quarter of a second apart, and the first that answers is used.
 */
export function createGuardedConnector(
  guard: Pick<EgressGuard, 'checkHost'>,
  { timeoutMs, ca, client, startTimer = startRealTimer }: ConnectorOptions,
): buildConnector.connector {
  const secure = buildConnector({
    timeout: timeoutMs,
    allowH2: false,
    // Without this line, the environment variable `NODE_TLS_REJECT_UNAUTHORIZED` could turn the check off.
    rejectUnauthorized: true,
    secureContext: createTlsContext({ ca, client }),
  })

  return (options, callback) => {
    const { hostname, protocol } = options
    const port = Number(options.port || (protocol === 'https:' ? 443 : 80))

    const startAttempt: StartAttempt<Socket> = (address, { onConnected, onFailed }) => {
      const beneath = connectTcp({ host: address, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS })
      let isGivenUp = false
      const onEnd: buildConnector.Callback = (...[error, socket]) => {
        if (isGivenUp) socket?.destroy()
        else if (error === null) onConnected(resetWhenAborted(socket, beneath))
        else onFailed(error)
      }
      if (protocol === 'https:') {
        // The certificate must be for the host name of the URL, not for the address.
        const servername = options.servername || (address === hostname ? undefined : hostname)
        secure({ ...options, hostname: address, httpSocket: beneath, ...(servername === undefined ? {} : { servername }) }, onEnd)
      } else whenConnected(beneath, timeoutMs, startTimer, onEnd)
      return {
        giveUp() {
          isGivenUp = true
          beneath.destroy()
        },
      }
    }

    const fail = (error: Error): void => callback(error, null)
    orWhenAborted(guard.checkHost(hostname, port), AbortSignal.timeout(timeoutMs), null).then(
      (verdict) => {
        if (verdict === null) fail(new errors.ConnectTimeoutError())
        else if (verdict.ok) connectStaggered(verdict.addresses, startAttempt, startTimer, callback)
        else fail(new EgressRefused(verdict.reason))
      },
      (error: unknown) => fail(error instanceof Error ? error : new Error('not resolved')),
    )
  }
}

function whenConnected(socket: Socket, timeoutMs: number, startTimer: StartTimer, onEnd: buildConnector.Callback): void {
  const cancel = startTimer(timeoutMs, () => void socket.destroy(new errors.ConnectTimeoutError()))
  const onError = (error: Error): void => {
    cancel()
    onEnd(error, null)
  }
  socket.once('error', onError).once('connect', () => {
    cancel()
    socket.off('error', onError)
    onEnd(null, socket)
  })
  socket.once('close', cancel)
}

/**
 * Makes the socket reset its connection when a post is aborted. After a mere close, the operating system could go on for minutes to send
 * bytes that were already written. The endpoint could then get them after a newer post of another replica. `beneath`: the TCP socket, which
 * is below `socket` if that is a TLS socket.
 */
function resetWhenAborted(socket: Socket, beneath: Socket): Socket {
  const destroy = socket.destroy.bind(socket)
  socket.destroy = (error) => {
    if (socket.destroyed || !isAbort(error)) return destroy(error)
    // The reset calls `destroy` without an error. The client waits for `error`, so pass it on.
    socket.destroy = () => destroy(error)
    beneath.resetAndDestroy()
    return destroy(error)
  }
  return socket
}

/** Whether undici destroys the connection because a request was aborted. An idle connection is closed with another error. */
const isAbort = (error: Error | undefined): boolean => error instanceof errors.InformationalError && error.message === 'aborted'

/** How long one address has to answer before the next is tried too (RFC 8305, "Connection Attempt Delay"). */
export const STAGGER_MS = 250
const ADDRESSES_MAX = 10

/** Starts one attempt to connect. `giveUp` ends the attempt, and no callback is called afterwards. */
export type StartAttempt<Connection> = (
  address: string,
  callbacks: { readonly onConnected: (connection: Connection) => void; readonly onFailed: (error: Error) => void },
) => { giveUp(): void }

/**
 * Tries the addresses of a host, and uses the first that answers (RFC 8305). Each attempt starts `STAGGER_MS` after the previous one, or as
 * soon as any attempt fails. So an address that drops packets costs a quarter of a second, and not the whole time limit. If all attempts fail,
 * the callback gets the last error.
 */
export function connectStaggered<Connection>(
  addresses: readonly string[],
  startAttempt: StartAttempt<Connection>,
  startTimer: StartTimer,
  onEnd: (...ended: [Error, null] | [null, Connection]) => void,
): void {
  const waiting = alternateFamilies(addresses).slice(0, ADDRESSES_MAX)
  const running = new Set<{ giveUp(): void }>()
  let cancelTimer = (): void => undefined
  let isOver = false

  function finish(...ended: [Error, null] | [null, Connection]): void {
    isOver = true
    cancelTimer()
    for (const attempt of running) attempt.giveUp()
    running.clear()
    onEnd(...ended)
  }

  function startNext(): void {
    cancelTimer()
    const address = waiting.shift()
    if (address === undefined) return
    if (waiting.length > 0) cancelTimer = startTimer(STAGGER_MS, startNext)
    const attempt = startAttempt(address, {
      onConnected(connection) {
        running.delete(attempt)
        if (!isOver) finish(null, connection)
      },
      onFailed(error) {
        running.delete(attempt)
        if (isOver) return
        if (waiting.length > 0) startNext()
        else if (running.size === 0) finish(error, null)
      },
    })
    running.add(attempt)
  }

  startNext()
}

/** Sorts addresses so that IPv6 and IPv4 alternate, because one of the two may have no route. The resolver's first address stays first. */
function alternateFamilies(addresses: readonly string[]): string[] {
  const isV6 = (address: string): boolean => address.includes(':')
  const first = addresses.filter((address) => isV6(address) === isV6(addresses[0] ?? ''))
  const second = addresses.filter((address) => !first.includes(address))
  return first.flatMap((address, index) => [address, ...second.slice(index, index + 1)]).concat(second.slice(first.length))
}

/** `ca`: a certificate authority (PEM) to trust in addition to the public ones. `client`: the certificate to show if a server asks for one. */
export interface TlsIdentity {
  readonly ca?: string | undefined
  readonly client?: ClientCertificate | undefined
}

/** Creates a TLS context. Use it for many connections: each context takes native memory, which the garbage collector does not count. */
export function createTlsContext({ ca, client }: TlsIdentity): SecureContext {
  return createSecureContext({
    ...(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }),
    ...(client === undefined ? {} : { cert: client.cert, key: client.key }),
  })
}
