import { lookup as systemLookup } from 'node:dns'
import { type LookupFunction, Socket } from 'node:net'
import pg from 'pg'
import { StorageFailure } from '../../core/domain/errors.ts'
import { openPool, type PoolOptions, takePoolerParameter } from './postgres-pool.ts'

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
type PoolSockets = ReturnType<typeof createPoolSockets>

function createPoolSockets() {
  const heardBytes = new Map<Socket, number>()
  return {
    open(): Socket {
      const socket = openServerSocket()
      heardBytes.set(socket, 0)
      return socket.once('close', () => heardBytes.delete(socket))
    },
    /** Whether any socket has received something since the last call. */
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

/** Milliseconds of one turn of a timer. Waits are counted in turns, so that a standstill of this process does not count. */
const TURN_MS = 100
/** After this many whole turns without any answer, a new connection is tried. */
const LOOK_AFTER_TURNS = 3
/** After this many whole turns the server counts as silent. So the relay answers every request within a second, if only with a 503. */
const SILENT_AFTER_TURNS = 7
/** How many turns a new connection may take. A busy server needs some time to accept it. */
const LOOK_TURNS_MAX = 17

interface SilencePorts {
  /** Whether any connection has received anything since the last call. */
  hasSpoken(): boolean
  /** Opens a new connection to find out whether the server is there. */
  look(): Look
  /** Closes all connections. */
  cut(): void
}

interface Look {
  readonly isThere: Promise<boolean>
  /** Ends the attempt, because the server is not there. */
  giveUp(): void
}

type Silence = ReturnType<typeof createSilence>

/**
 * Notices a server that has fallen silent. A cut network, for example, raises no error.
 *
 * The server **answers** as long as any connection receives anything: a server that is only busy still serves some connections. If a request
 * has waited for 0.3 s and no connection has received anything, a new connection is tried, because each of the others may wait for a long
 * statement. An answer to the new connection counts too.
 *
 * The server is **silent** if a request has waited for 0.7 s and nothing was received. Then all waiting requests fail, and new requests fail
 * at once. New connections are tried until one is answered. After each try the old connections are closed, because they may recover only
 * long after the network.
 */
export function createSilence({ hasSpoken, look: begin, cut }: SilencePorts) {
  const waiting = new Set<{ readonly fromTurn: number; fail(error: StorageFailure): void }>()
  let turn = 0
  let heardAt = 0
  let isSilent = false
  let isAnswered = false
  let look: { readonly giveUp: () => void; turns: number } | null = null

  async function tryAnew(): Promise<void> {
    const { isThere, giveUp } = begin()
    look = { giveUp, turns: 0 }
    const answer = await isThere
    look = null
    if (isSilent) cut()
    // The answer counts from the next turn on, when the old connections are closed.
    isAnswered = answer
  }

  function listen(): void {
    if (!hasSpoken() && !isAnswered) return
    heardAt = turn
    isAnswered = false
    isSilent = false
  }

  /** Counts the whole turns for which the oldest request has waited while nothing was received. */
  function quietTurns(): number {
    const [oldest] = waiting
    return oldest === undefined ? 0 : turn - Math.max(heardAt, oldest.fromTurn)
  }

  return {
    /**
     * Runs work that needs the server. Rejects with a `StorageFailure` if the server is silent, or as soon as it falls silent. Work that waits
     * for something else first must call `check` before its first statement. `check` throws if the server has fallen silent meanwhile.
     */
    async run<T>(work: (check: () => void) => Promise<T>): Promise<T> {
      if (isSilent) throw unanswered()
      const { promise: found, reject } = Promise.withResolvers<never>()
      const one = { fromTurn: turn + 1, fail: reject }
      waiting.add(one)
      const check = () => {
        if (!waiting.has(one)) throw unanswered()
      }
      try {
        return await Promise.race([work(check), found])
      } finally {
        waiting.delete(one)
      }
    },
    isSilent: () => isSilent,
    /** Call every `TURN_MS`. */
    turn() {
      turn += 1
      listen()
      if (look !== null) {
        look.turns += 1
        if (look.turns > LOOK_TURNS_MAX) look.giveUp()
      } else if (isSilent || quietTurns() >= LOOK_AFTER_TURNS) void tryAnew()
      if (quietTurns() < SILENT_AFTER_TURNS) return
      isSilent = true
      for (const one of waiting) one.fail(unanswered())
    },
    end: () => look?.giveUp(),
  }
}

function unanswered(): StorageFailure {
  return new StorageFailure('the database does not answer', undefined, 'ETIMEDOUT')
}

/** How long one address of the server may take to answer before the next is tried, in milliseconds. */
const ATTEMPT_MS = 250

/**
 * Opens a socket for the driver. If the server's name has several addresses, it tries the next one after a quarter of a second, even if
 * Node's own option for that is off. Otherwise an address that drops packets would use up the whole time limit. The last address gets the
 * time that is left.
 */
export function openServerSocket(lookup: LookupFunction = systemLookup): Socket {
  const socket = new Socket()
  const connect = socket.connect.bind(socket)
  // The driver gives a port and a host, or the path of a Unix socket.
  const connectToAny = (port: number | string, host?: string): Socket =>
    typeof port === 'string' && host === undefined
      ? connect(port)
      : connect({
          port: Number(port),
          ...(host === undefined ? {} : { host }),
          lookup,
          autoSelectFamily: true,
          autoSelectFamilyAttemptTimeout: ATTEMPT_MS,
        })
  return Object.assign(socket, { connect: connectToAny })
}
