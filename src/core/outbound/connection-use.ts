import type { Socket } from 'node:net'
import { Client, type Dispatcher, Pool } from 'undici'
import { isConnectionLost } from './send-failure.ts'

/** How a client has used its current connection. */
export interface ConnectionUse {
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
