import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface ConnectionPlacesOptions {
  /** `limits.connections`: how many may be open at once, those in a TLS handshake included. */
  readonly placesMax: number
  /** From the moment a connection is accepted to the end of its first request. */
  readonly firstRequestMs: number
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number
}

/** The connections of a listener, each of which costs memory and a descriptor. */
export interface ConnectionPlaces {
  /** Gives a place to a connection as it is accepted, before any TLS handshake; if there is none, another connection is closed, or this one. */
  take(socket: Socket): void
  /** Call with the first request of each connection, once its header has arrived. */
  begun(req: IncomingMessage, res: ServerResponse): void
  /** Closes every connection that has sent no whole request in time. */
  sweep(): void
  /** Closes every connection. */
  closeAll(): void
}

interface Connection {
  /** As accepted: with TLS, the socket below it. */
  readonly socket: Socket
  readonly name: string
  readonly openedAtMs: number
  /** The first request, until it is known to be whole. */
  first: { readonly req: IncomingMessage; readonly res: ServerResponse } | null
  /** The socket that requests come on, once one is known to be whole. */
  asker: Socket | null
}

const TIMED_OUT = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n'

/** The sockets that have brought a signed push or a valid token. */
const proven = new WeakSet<Socket>()

/** Notes that a request was authentic: its connection never gives its place to a stranger. */
export function proveConnection({ socket }: Pick<IncomingMessage, 'socket'>): void {
  proven.add(socket)
}

/**
 * Anyone may connect, so a connection has to show what it is for. Until its first request is whole, all of its phases (waiting for a byte,
 * the TLS handshake, the header, the body) share one deadline. When places are short, the oldest that has sent no whole request gives way;
 * if there is none, the oldest of those whose requests proved nothing; and if all the others are proven, the newcomer.
 */
export function createConnectionPlaces({ placesMax, firstRequestMs, now }: ConnectionPlacesOptions): ConnectionPlaces {
  const open = new Map<string, Connection>()
  /** In order of opening. Some may have sent their request: that is looked up only when it matters. */
  const silent = new Set<Connection>()
  /** They have sent a whole request. Some may be proven by now. */
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

  /** Whether a connection has sent a whole request; it is then no longer among the silent ones. */
  const hasAsked = (connection: Connection): boolean => {
    if (connection.first?.req.complete !== true) return false
    connection.asker = connection.first.req.socket
    // Requests are large, and connections are kept for long.
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
    take(socket) {
      const connection: Connection = { socket, name: nameOf(socket), openedAtMs: now(), first: null, asker: null }
      open.set(connection.name, connection)
      silent.add(connection)
      socket.once('close', () => leave(connection))
      if (open.size > placesMax) makeRoomFor(connection)
    },
    begun(req, res) {
      const connection = open.get(nameOf(req.socket))
      if (connection !== undefined) connection.first = { req, res }
    },
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

/** A TLS socket and the one below it are two objects with the same peer. */
function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
