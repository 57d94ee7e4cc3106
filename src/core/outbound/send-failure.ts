import type { Socket } from 'node:net'
import { Client, type Dispatcher, errors, Pool } from 'undici'
import type { FailureReason } from '../domain/delivery/delivery.ts'
import { systemCode } from '../domain/errors.ts'
import { tlsFaultOf } from '../domain/system-reason.ts'
import { EgressRefused } from './guarded-connector.ts'

/** Why an attempt got no answer. */
export interface SendFailure {
  readonly reason: FailureReason
  /** A code, never a message, because messages quote what was sent and received. */
  readonly detail: string
}

export const LENGTH_UNCLEAR = 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'

const BY_CODE: ReadonlyMap<string, FailureReason> = new Map([
  ['ENOTFOUND', 'dns'],
  ['ECONNREFUSED', 'connection_refused'],
  ['EHOSTUNREACH', 'connection_refused'],
  ['ENETUNREACH', 'connection_refused'],
  ['ECONNRESET', 'reset'],
  ['EPIPE', 'reset'],
  ['UND_ERR_SOCKET', 'reset'],
  ['UND_ERR_HEADERS_OVERFLOW', 'bad_response'],
  // The answer names its length twice, or beside `Transfer-Encoding`, so its end is not certain (RFC 9112, 6.3).
  [LENGTH_UNCLEAR, 'bad_response'],
  ['ETIMEDOUT', 'timeout'],
  ['UND_ERR_CONNECT_TIMEOUT', 'timeout'],
])

/** Undici's error codes for a proxy that opened no tunnel, refused our credentials, or could not be reached. */
const BY_PROXY: ReadonlySet<string> = new Set(['UND_ERR_ABORTED', 'UND_ERR_PRX_TLS', 'UND_ERR_PRX_CONN', 'UND_ERR_INVALID_ARG'])

/**
 * Says why a request through a proxy got no answer. The relay looks up only the proxy's name and connects only to the proxy, so a failed lookup
 * or a refused connection means that the proxy was not reached.
 */
export function proxiedFailureOf(error: unknown): SendFailure {
  const failure = failureOf(error)
  const isOfProxy = BY_PROXY.has(failure.detail) || failure.reason === 'dns' || failure.reason === 'connection_refused'
  return isOfProxy ? { ...failure, reason: 'proxy' } : failure
}

/** Says why a request got no answer. `error`: the error that ended the request before its deadline. */
export function failureOf(error: unknown): SendFailure {
  if (error instanceof EgressRefused) return { reason: 'forbidden', detail: error.reason }
  if (error instanceof errors.HTTPParserError) return { reason: 'bad_response', detail: 'NO_HTTP' }
  const code = systemCode(error) ?? 'UNKNOWN'
  return { reason: reasonOf(code), detail: code }
}

/** Whether the other side closed or reset the connection. */
function isConnectionLost(error: unknown): boolean {
  return reasonOf(systemCode(error) ?? '') === 'reset'
}

function reasonOf(code: string): FailureReason {
  if (code.startsWith('EAI_')) return 'dns'
  return tlsFaultOf(code) ?? BY_CODE.get(code) ?? 'network'
}

/** How a client has used its current connection. */
interface ConnectionUse {
  /** Null: no connection has been made yet. */
  socket: Socket | null
  /** The number of requests that have begun on this connection. */
  requests: number
}

export interface ConnectionUser extends Dispatcher.DispatchHandler {
  /** Called before the request starts. `use` describes the current connection of the client that makes the request, and stays up to date. */
  onClient(use: ConnectionUse): void
}

/** A connection serves from `min` to `max`, by chance, so that connections that were made together are not all closed together. */
const LIFE_MS = { min: 240_000, max: 300_000 }

export interface PoolPorts {
  readonly monotonic: () => number
  /** From 0 (inclusive) to 1 (exclusive). Default: `Math.random`. */
  readonly random?: (() => number) | undefined
}

export type CreatePool = (origin: string | URL, options: Pool.Options) => Pool

/**
 * Returns a function that creates pools. A pool tells each `ConnectionUser` which connection its request uses. It closes a connection whose
 * life is over and makes a new one for the next request. So a host that moves to another address is found, and is checked again.
 */
export function createPoolFactory(ports: PoolPorts): CreatePool {
  return (origin, options) =>
    new Pool(origin, { ...options, factory: (to, given: Client.Options) => createTrackedClient(to, given, ports) })
}

function createTrackedClient(origin: URL, options: Client.Options, { monotonic, random = Math.random }: PoolPorts): Dispatcher {
  const use: ConnectionUse = { socket: null, requests: 0 }
  let endsAtMs = Number.POSITIVE_INFINITY
  const { connect } = options
  // A pool always passes a connector as a function.
  if (typeof connect !== 'function') throw new TypeError('the pool gives no connector')
  const client = new Client(origin, {
    ...options,
    connect: (to, callback) =>
      connect(to, (...result) => {
        use.socket = result[1]
        use.requests = 0
        endsAtMs = monotonic() + LIFE_MS.min + random() * (LIFE_MS.max - LIFE_MS.min)
        callback(...result)
      }),
  })
  const dispatch = client.dispatch.bind(client)
  client.dispatch = (request, handler) => {
    // Without a connection, the client makes one for this request. `size` counts the requests that run or wait.
    if (monotonic() >= endsAtMs && client.stats.size === 0) use.socket?.destroy()
    if (isConnectionUser(handler)) handler.onClient(use)
    return dispatch(request, handler)
  }
  return client
}

function isConnectionUser(handler: Dispatcher.DispatchHandler): handler is ConnectionUser {
  return 'onClient' in handler
}

/**
 * Decides whether a failed request may be repeated. A repeat is allowed if an earlier request had used the same connection, and the other side
 * closed the connection without a byte of an answer. Then the other side most likely never saw the request.
 */
export function createReuseCheck() {
  let use: ConnectionUse | null = null
  let socket: Socket | null = null
  let isReused = false
  let bytesBefore = 0
  let address: string | undefined
  return {
    belongsTo(client: ConnectionUse) {
      use = client
    },
    /** Must be called when the request starts. */
    begin() {
      if (use === null) return
      socket = use.socket
      isReused = use.requests > 0
      bytesBefore = socket?.bytesRead ?? 0
      // Read the address now, because a closed socket no longer has it.
      address = socket?.remoteAddress
      use.requests += 1
    },
    /** Returns the IP address at the other end of the request's connection. Undefined: the request has no connection. */
    address: (): string | undefined => address,
    /** False after a byte of an answer or a time-out: in both cases the other side may have seen the request. */
    mayRepeat: (error: unknown) => isReused && socket?.bytesRead === bytesBefore && isConnectionLost(error),
  }
}
