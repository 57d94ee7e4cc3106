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

/** Creates a pool that tells each `ConnectionUser` which connection its request uses. */
export function createTrackedPool(origin: string | URL, options: Pool.Options): Pool {
  return new Pool(origin, { ...options, factory: createTrackedClient })
}

function createTrackedClient(origin: URL, options: Client.Options): Dispatcher {
  const use: ConnectionUse = { socket: null, requests: 0 }
  const { connect } = options
  // A pool always passes a connector as a function.
  if (typeof connect !== 'function') throw new TypeError('the pool gives no connector')
  const client = new Client(origin, {
    ...options,
    connect: (to, callback) =>
      connect(to, (...result) => {
        use.socket = result[1]
        use.requests = 0
        callback(...result)
      }),
  })
  const dispatch = client.dispatch.bind(client)
  client.dispatch = (request, handler) => {
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
export interface ReuseCheck {
  belongsTo(client: ConnectionUse): void
  /** Must be called when the request starts. */
  begin(): void
  /** Returns the IP address at the other end of the request's connection. Undefined: the request has no connection. */
  address(): string | undefined
  /** False after a byte of an answer or a time-out: in both cases the other side may have seen the request. */
  mayRepeat(error: unknown): boolean
}

export function createReuseCheck(): ReuseCheck {
  let use: ConnectionUse | null = null
  let socket: Socket | null = null
  let isReused = false
  let bytesBefore = 0
  let address: string | undefined
  return {
    belongsTo(client) {
      use = client
    },
    begin() {
      if (use === null) return
      socket = use.socket
      isReused = use.requests > 0
      bytesBefore = socket?.bytesRead ?? 0
      // Read the address now, because a closed socket no longer has it.
      address = socket?.remoteAddress
      use.requests += 1
    },
    address: () => address,
    mayRepeat: (error) => isReused && socket?.bytesRead === bytesBefore && isConnectionLost(error),
  }
}
