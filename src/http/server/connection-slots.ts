import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface ConnectionSlotsOptions {
  /** `limits.connections`: how many may be open at once, including those in a TLS handshake. */
  readonly slotsMax: number
  /** How long a connection may take from when it is accepted to the end of its first request. */
  readonly firstRequestMs: number
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number
}

/** Limits the connections of a listener, because each costs memory and a file descriptor. */
export interface ConnectionSlots {
  /** Gives a slot to a connection when it is accepted, before any TLS handshake. If none is free, closes another connection or this one. */
  take(socket: Socket): void
  /** Call it with the first request of each connection, when its header has arrived. */
  begun(req: IncomingMessage, res: ServerResponse): void
  /** Closes every connection that has not sent a whole request in time. */
  sweep(): void
  /** Closes every connection. */
  closeAll(): void
}

interface Connection {
  /** The accepted socket. With TLS, it is the one below the TLS socket. */
  readonly socket: Socket
  readonly name: string
  readonly openedAtMs: number
  /** The first request, until it is known to be complete. */
  first: { readonly req: IncomingMessage; readonly res: ServerResponse } | null
  /** The socket of the first request, when that request is known to be complete. */
  asker: Socket | null
}

const TIMED_OUT = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n'

/** The sockets that have brought a signed push or a valid token. */
const proven = new WeakSet<Socket>()

/** Notes that a request was authentic, so that its connection is never closed to make room for another. */
export function proveConnection({ socket }: Pick<IncomingMessage, 'socket'>): void {
  proven.add(socket)
}

/**
 * Anyone may connect, so a connection must show its purpose. Until its first request is complete, one deadline covers everything: waiting
 * for a byte, the TLS handshake, the header, the body.
 *
 * If slots are short, the oldest connection without a complete request is closed. If there is none, the oldest is closed whose requests
 * have proved nothing. If all others are proven, the new one is closed.
 */
export function createConnectionSlots({ slotsMax, firstRequestMs, now }: ConnectionSlotsOptions): ConnectionSlots {
  const open = new Map<string, Connection>()
  /** Connections without a complete request, the oldest first. Some may have sent one meanwhile: `hasAsked` finds out when it matters. */
  const silent = new Set<Connection>()
  /** Connections that have sent a complete request. Some may have become proven meanwhile. */
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

  /** Whether a connection has sent a complete request. If so, moves it from the silent ones to the strangers. */
  const hasAsked = (connection: Connection): boolean => {
    if (connection.first?.req.complete !== true) return false
    connection.asker = connection.first.req.socket
    // A request takes much memory, and a connection may stay open for long.
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
      if (open.size > slotsMax) makeRoomFor(connection)
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

/** A TLS socket and the one below it are two objects, so the address of their peer identifies the connection. */
function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
