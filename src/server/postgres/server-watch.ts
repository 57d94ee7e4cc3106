import type { Socket } from 'node:net'
import pg from 'pg'
import { takePoolerParameter } from './pooler-parameter.ts'
import { openPool, type PoolOptions } from './postgres-pool.ts'
import { createSilence, type Look, type Silence, TURN_MS } from './server-silence.ts'
import { openServerSocket } from './server-socket.ts'

/** How long the server may take to close connections before they are destroyed. */
const GOODBYE_MS = 1000

/** Watches all connections of a relay to its server. The server counts as answering as long as any connection receives something. */
export interface ServerWatch {
  openPool(options: Omit<PoolOptions, 'newSocket' | 'onConnectionLost'>): WatchedPool
}

export interface WatchedPool extends Pick<Silence, 'run'> {
  readonly pool: pg.Pool
  /** Closes the connections: at once if the server is silent, otherwise within seconds. Further calls do nothing. */
  close(): Promise<void>
}

export function watchServer(address: string): ServerWatch {
  const { url } = takePoolerParameter(address)
  const pools = new Set<PoolSockets>()
  const silence = createSilence({
    // Call `haveHeard` of every pool, because each call also notes how much its sockets have received.
    hasSpoken: () => [...pools].filter((sockets) => sockets.haveHeard()).length > 0,
    look: () => lookAt(url),
    cut() {
      for (const sockets of pools) sockets.cut()
    },
  })
  let timer: NodeJS.Timeout | undefined

  function forget(sockets: PoolSockets): void {
    pools.delete(sockets)
    if (pools.size > 0) return
    clearInterval(timer)
    timer = undefined
    silence.end()
  }

  return {
    openPool(options) {
      const sockets = createPoolSockets()
      const pool = openPool(url, { ...options, newSocket: sockets.open, onConnectionLost: () => undefined })
      pools.add(sockets)
      timer ??= setInterval(silence.turn, TURN_MS).unref()
      return {
        pool,
        run: silence.run,
        async close() {
          if (pool.ending) return
          const ended = pool.end()
          // The pool does not wait until the server has closed the connections. Open sockets would keep the process alive, so destroy them.
          if (silence.isSilent()) sockets.cut()
          else setTimeout(sockets.cut, GOODBYE_MS).unref()
          await ended
          forget(sockets)
        },
      }
    },
  }
}

/** The TCP sockets of a pool, also under TLS, and also those that are still connecting. */
interface PoolSockets {
  open(): Socket
  /** Whether any socket has received something since the last call. */
  haveHeard(): boolean
  cut(): void
}

function createPoolSockets(): PoolSockets {
  const heardBytes = new Map<Socket, number>()
  return {
    open() {
      const socket = openServerSocket()
      heardBytes.set(socket, 0)
      return socket.once('close', () => heardBytes.delete(socket))
    },
    haveHeard() {
      let haveHeard = false
      for (const [socket, before] of heardBytes) {
        if (socket.bytesRead === before) continue
        haveHeard = true
        heardBytes.set(socket, socket.bytesRead)
      }
      return haveHeard
    },
    cut() {
      for (const socket of heardBytes.keys()) socket.destroy()
    },
  }
}

function lookAt(url: string): Look {
  const client = new pg.Client({ connectionString: url, application_name: 'parcel-relay', stream: () => openServerSocket() })
  return { isThere: answers(client), giveUp: () => client.connection.stream.destroy() }
}

/** Whether a server answers a new connection, even if only with an error. */
async function answers(client: pg.Client): Promise<boolean> {
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch (error) {
    return error instanceof pg.DatabaseError
  } finally {
    client.end().catch(() => undefined)
    setTimeout(() => client.connection.stream.destroy(), GOODBYE_MS).unref()
  }
}
