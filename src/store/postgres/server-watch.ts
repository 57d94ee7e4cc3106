import pg from 'pg'
import { StorageFailure } from '../../domain/errors.ts'

/** Time is counted in turns of a timer, so that a process which stood still itself, for however long, has not waited. */
const TURN_MS = 250
/** How long an answer is waited for before it is asked whether the server is there at all. */
const SILENT_TURNS = 4
/** How long that may take: a busy server needs a while to let somebody in. */
const LOOK_TURNS = 6
const GOODBYE_MS = 1000

export interface ServerWatch {
  /**
   * Runs what asks the server. Rejects with a `StorageFailure` at once while the server does not answer, and as soon as that is found out. `check`
   * throws then too: what has not begun by then is not to begin.
   */
  run<T>(work: (check: () => void) => Promise<T>): Promise<T>
  /** Ends the pool, and is done within seconds though nobody answers its goodbyes. */
  end(): Promise<void>
}

interface Waiting {
  turns: number
  fail(error: StorageFailure): void
}

/**
 * Notices a server that has fallen silent, as behind a cut network, which raises no error. When a query waits long for its answer, the watch tries a new
 * connection. If that fails too, it closes all connections, fails every waiting query, and refuses new ones at once until a connection succeeds again.
 */
export function watchServer(pool: pg.Pool, connect: () => pg.Client): ServerWatch {
  const waiting = new Set<Waiting>()
  const clients = new Set<pg.PoolClient>()
  let isAway = false
  let look: { readonly client: pg.Client; turns: number } | null = null
  let turnsSinceLook = 0
  pool.on('connect', (client) => clients.add(client))
  pool.on('remove', (client) => clients.delete(client))

  async function begin(): Promise<void> {
    const client = connect()
    look = { client, turns: 0 }
    const isThere = await answers(client)
    look = null
    turnsSinceLook = 0
    if (isThere !== isAway) return
    isAway = !isThere
    if (isAway) giveUp()
  }

  function giveUp(): void {
    for (const client of clients) client.connection.stream.destroy()
    for (const one of waiting) one.fail(unanswered())
  }

  const timer = setInterval(() => {
    turnsSinceLook += 1
    for (const one of waiting) one.turns += 1
    if (look !== null) {
      look.turns += 1
      if (look.turns > LOOK_TURNS) look.client.connection.stream.destroy()
    } else if (isAway || (turnsSinceLook > SILENT_TURNS && [...waiting].some(({ turns }) => turns > SILENT_TURNS))) void begin()
  }, TURN_MS).unref()

  return {
    async run(work) {
      if (isAway) throw unanswered()
      const { promise: found, reject } = Promise.withResolvers<never>()
      const one = { turns: 0, fail: reject }
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
    async end() {
      // The pool does not wait for the answers itself, and the process would.
      setTimeout(giveUp, GOODBYE_MS).unref()
      await pool.end()
      clearInterval(timer)
      look?.client.connection.stream.destroy()
    },
  }
}

function unanswered(): StorageFailure {
  return new StorageFailure('the database does not answer')
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
  }
}
