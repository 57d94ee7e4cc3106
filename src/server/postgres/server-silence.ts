import { StorageFailure } from '../../core/domain/errors.ts'

/** Milliseconds of one turn of a timer. Waits are counted in turns, so that a standstill of this process does not count. */
export const TURN_MS = 100
/** After this many whole turns without any answer, a new connection is tried. */
const LOOK_AFTER_TURNS = 3
/** After this many whole turns the server counts as silent. So the relay answers every request within a second, if only with a 503. */
const SILENT_AFTER_TURNS = 7
/** How many turns a new connection may take. A busy server needs some time to accept it. */
const LOOK_TURNS_MAX = 17

export interface SilencePorts {
  /** Whether any connection has received anything since the last call. */
  hasSpoken(): boolean
  /** Opens a new connection to find out whether the server is there. */
  look(): Look
  /** Closes all connections. */
  cut(): void
}

export interface Look {
  readonly isThere: Promise<boolean>
  /** Ends the attempt, because the server is not there. */
  giveUp(): void
}

export interface Silence {
  /**
   * Runs work that needs the server. Rejects with a `StorageFailure` if the server is silent, or as soon as it falls silent. Work that waits
   * for something else first must call `check` before its first statement. `check` throws if the server has fallen silent meanwhile.
   */
  run<T>(work: (check: () => void) => Promise<T>): Promise<T>
  isSilent(): boolean
  /** Call every `TURN_MS`. */
  turn(): void
  end(): void
}

interface Waiting {
  readonly fromTurn: number
  fail(error: StorageFailure): void
}

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
export function createSilence({ hasSpoken, look: begin, cut }: SilencePorts): Silence {
  const waiting = new Set<Waiting>()
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
    async run(work) {
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
