import type { Socket } from 'node:net'
import { Client, type Dispatcher, Pool } from 'undici'
import { isConnectionLost } from './send-failure.ts'

/** How a client has used the connection that it has now. */
export interface ConnectionUse {
  /** Null until the first connection is made. */
  socket: Socket | null
  /** The requests begun on it. */
  requests: number
}

/** A handler that wants to know the connection its request goes out on. */
export interface ConnectionUser extends Dispatcher.DispatchHandler {
  /** Called before the request starts, with what is kept up to date for the client that makes it. */
  onClient(use: ConnectionUse): void
}

/** A pool whose handlers learn which connection they have: the library tells them neither that nor whether it is new. */
export function createTrackedPool(origin: string | URL, options: Pool.Options): Pool {
  return new Pool(origin, { ...options, factory: createTrackedClient })
}

function createTrackedClient(origin: URL, options: Client.Options): Dispatcher {
  const use: ConnectionUse = { socket: null, requests: 0 }
  const { connect } = options
  // A pool has made a function of whatever it was given.
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

/** Tells whether a request that failed may be repeated: whether it was lost with a connection that had served before. */
export interface ReuseCheck {
  belongsTo(client: ConnectionUse): void
  /** To be called when the request starts. */
  begin(): void
  /** False if a byte of an answer had come, and after a time-out, because the other side may be at work on the request. */
  mayRepeat(error: unknown): boolean
}

export function createReuseCheck(): ReuseCheck {
  let use: ConnectionUse | null = null
  let socket: Socket | null = null
  let isReused = false
  let bytesBefore = 0
  return {
    belongsTo(client) {
      use = client
    },
    begin() {
      if (use === null) return
      socket = use.socket
      isReused = use.requests > 0
      bytesBefore = socket?.bytesRead ?? 0
      use.requests += 1
    },
    mayRepeat: (error) => isReused && socket?.bytesRead === bytesBefore && isConnectionLost(error),
  }
}
