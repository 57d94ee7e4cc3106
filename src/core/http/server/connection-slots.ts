import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface ConnectionSlotsOptions {
  /** `limits.connections`: how many connections may be open at once, also in their TLS handshake. */
  readonly slotsMax: number
  /** The longest time from the start of a connection to the end of its first request. */
  readonly firstRequestMs: number
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number
}

interface Connection {
  /** The accepted TCP socket. With TLS, requests have another socket, which wraps this one. */
  readonly socket: Socket
  readonly name: string
  readonly openedAtMs: number
  /** The first request, while its body arrives. Null before its header has arrived, and again after `hasAsked` has found it complete. */
  first: { readonly req: IncomingMessage; readonly res: ServerResponse } | null
  /** The socket of the first request. Null until `hasAsked` has found that request complete. */
  asker: Socket | null
}

const TIMED_OUT = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n'

/** Sockets over which a signed push or a request with a valid token came. */
const proven = new WeakSet<Socket>()

/** Notes that a request was authentic. Its connection is then never closed to make room for another one. */
export function proveConnection({ socket }: Pick<IncomingMessage, 'socket'>): void {
  proven.add(socket)
}

/**
 * Anybody may connect and then stay silent. So a new connection has one deadline for everything until the end of its first request: the
 * TLS handshake, the header and the body.
 *
 * If no slot is free for a new connection, the oldest connection without a complete request is closed. If all others have sent a complete
 * request, the oldest without an authentic request is closed. If all others have sent an authentic request, the new connection is closed.
 */
export function createConnectionSlots({ slotsMax, firstRequestMs, now }: ConnectionSlotsOptions) {
  const open = new Map<string, Connection>()
  /** Connections without a complete request when `hasAsked` last looked, the oldest first. */
  const silent = new Set<Connection>()
  /** Connections with a complete request. `oldestStranger` removes connections that have become `proven`. */
  const strangers = new Set<Connection>()

  const leave = (connection: Connection): void => {
    if (open.get(connection.name) === connection) open.delete(connection.name)
    silent.delete(connection)
    strangers.delete(connection)
  }

  const close = (connection: Connection): void => {
    leave(connection)
    connection.socket.destroy()
  }

  /** Whether a connection has sent a complete request. If so, moves it from `silent` to `strangers`. */
  const hasAsked = (connection: Connection): boolean => {
    if (connection.first?.req.complete !== true) return false
    connection.asker = connection.first.req.socket
    // Drop the request: it takes much memory, and the connection may stay open for a long time.
    connection.first = null
    silent.delete(connection)
    strangers.add(connection)
    return true
  }

  const oldestSilent = (): Connection | null => {
    for (const connection of silent) if (!hasAsked(connection)) return connection
    return null
  }

  const oldestStranger = (): Connection | null => {
    for (const connection of strangers) {
      if (connection.asker === null || !proven.has(connection.asker)) return connection
      strangers.delete(connection)
    }
    return null
  }

  const makeRoomFor = (newcomer: Connection): void => {
    const silentOne = oldestSilent()
    close((silentOne === newcomer ? oldestStranger() : silentOne) ?? newcomer)
  }

  return {
    /** Must be called for each new connection, before any TLS handshake. If no slot is free, closes another connection or this one. */
    take(socket: Socket) {
      const connection: Connection = { socket, name: nameOf(socket), openedAtMs: now(), first: null, asker: null }
      open.set(connection.name, connection)
      silent.add(connection)
      socket.once('close', () => leave(connection))
      if (open.size > slotsMax) makeRoomFor(connection)
    },
    /** Must be called when the header of a connection's first request has arrived. */
    begun(req: IncomingMessage, res: ServerResponse) {
      const connection = open.get(nameOf(req.socket))
      if (connection !== undefined) connection.first = { req, res }
    },
    /** Closes every connection that has not sent a whole request within `firstRequestMs`. */
    sweep() {
      const before = now() - firstRequestMs
      for (const connection of silent) {
        if (connection.openedAtMs > before) return
        if (hasAsked(connection)) continue
        leave(connection)
        if (connection.first === null || connection.first.res.headersSent) connection.socket.destroy()
        else sayTimedOut(connection.first.req.socket)
      }
    },
    closeAll() {
      for (const connection of open.values()) close(connection)
    },
  }
}

function sayTimedOut(socket: Socket): void {
  socket.write(TIMED_OUT)
  socket.destroySoon()
}

/** Names a connection by its peer. With TLS, the accepted socket and the socket of a request are two objects, but have the same peer. */
function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
