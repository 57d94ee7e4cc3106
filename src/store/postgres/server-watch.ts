import { Socket } from 'node:net'
import pg from 'pg'
import { takePoolerParameter } from './pooler-parameter.ts'
import { openPool, type PoolOptions } from './postgres-pool.ts'
import { createSilence, type Look, type Silence, TURN_MS } from './server-silence.ts'

/** How long a server has to answer goodbyes. */
const GOODBYE_MS = 1000

/** Watches over all connections of one relay to its server: what one of them hears, all know. */
export interface ServerWatch {
  openPool(options: Omit<PoolOptions, 'newSocket' | 'onConnectionLost'>): WatchedPool
}

export interface WatchedPool extends Pick<Silence, 'run'> {
  readonly pool: pg.Pool
  /** Closes the connections, once, however often it is called: at once if the server is silent, otherwise within seconds. */
  close(): Promise<void>
}

interface Watched {
  /** Whether the server has said anything since the last call. */
  hasSpoken(): boolean
  cut(): void
}

/** A place is the address of the database. */
export function watchServer(place: string): ServerWatch {
  const { url } = takePoolerParameter(place)
  const pools = new Set<Watched>()
  const silence = createSilence({
    // Of each pool: none may keep what it has heard for later.
    hasSpoken: () => [...pools].filter((one) => one.hasSpoken()).length > 0,
    look: () => lookAt(url),
    cut() {
      for (const one of pools) one.cut()
    },
  })
  let timer: NodeJS.Timeout | undefined

  function forget(watched: Watched): void {
    pools.delete(watched)
    if (pools.size > 0) return
    clearInterval(timer)
    timer = undefined
    silence.end()
  }

  return {
    openPool(options) {
      const { pool, watched } = openWatched(url, options)
      pools.add(watched)
      timer ??= setInterval(silence.turn, TURN_MS).unref()
      return {
        pool,
        run: silence.run,
        async close() {
          if (pool.ending) return
          const ended = pool.end()
          // The pool does not wait for the answers to its goodbyes, and the process would.
          if (silence.isSilent()) watched.cut()
          else setTimeout(watched.cut, GOODBYE_MS).unref()
          await ended
          forget(watched)
        },
      }
    },
  }
}

function openWatched(url: string, options: Omit<PoolOptions, 'newSocket' | 'onConnectionLost'>) {
  /** How many bytes were heard on each. Under TLS too, it is the socket of the network. */
  const heardOn = new Map<Socket, number>()
  const pool = openPool(url, {
    ...options,
    onConnectionLost: () => undefined,
    newSocket() {
      const socket = new Socket()
      heardOn.set(socket, 0)
      return socket.once('close', () => heardOn.delete(socket))
    },
  })
  const watched: Watched = {
    hasSpoken() {
      let hasSpoken = false
      for (const [socket, before] of heardOn) {
        if (socket.bytesRead === before) continue
        hasSpoken = true
        heardOn.set(socket, socket.bytesRead)
      }
      return hasSpoken
    },
    cut() {
      for (const socket of heardOn.keys()) socket.destroy()
    },
  }
  return { pool, watched }
}

function lookAt(url: string): Look {
  const client = new pg.Client({ connectionString: url, application_name: 'parcel-relay' })
  return { isThere: answers(client), giveUp: () => client.connection.stream.destroy() }
}

/** Whether a server says anything to a newcomer, be it that there is no room. */
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
