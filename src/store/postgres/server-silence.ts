import { StorageFailure } from '../../domain/errors.ts'

/** Time is counted in turns of a timer, so that a process which stood still itself, for however long, has not waited. */
export const TURN_MS = 100
/** How many whole turns nothing is heard before a new connection is tried. */
const LOOK_AFTER_TURNS = 3
/** Every question gets an answer within a second, if only 503. */
const SILENT_AFTER_TURNS = 7
/** How long a new connection may take: a busy server needs a while to let somebody in. */
const LOOK_TURNS_MAX = 17

export interface SilencePorts {
  /** Whether anything was heard on any connection since the last call. */
  hasSpoken(): boolean
  /** Asks by a new connection whether the server is there. */
  look(): Look
  /** Closes all connections. */
  cut(): void
}

export interface Look {
  readonly isThere: Promise<boolean>
  /** Ends it: the server is not there. */
  giveUp(): void
}

export interface Silence {
  /**
   * Runs what asks the server. Rejects with a `StorageFailure` at once while the server is silent, and as soon as that is found out. `check` throws then too:
   * work that has not begun must not begin then.
   */
  run<T>(work: (check: () => void) => Promise<T>): Promise<T>
  isSilent(): boolean
  /** To be called every 100 ms. */
  turn(): void
  end(): void
}

interface Waiting {
  readonly fromTurn: number
  fail(error: StorageFailure): void
}

/**
 * Notices a server that has fallen silent, as behind a cut network, which raises no error.
 *
 * It **speaks** as long as anything is heard, on whichever connection: a server that is only busy says something to somebody. When something has been asked for
 * 0.3 s and nothing was heard, a new connection is tried, whose answer counts as well: all others may wait for one long statement.
 *
 * It is **silent** when that has lasted for 0.7 s. Then everything that waits fails, and what is asked fails at once. New connections are tried until it
 * speaks. When one of them ends, answered or not, the old ones are closed: should they ever come back, it may be long after the network.
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
    // It counts from the next turn on, when the connections that were cut are closed.
    isAnswered = answer
  }

  function listen(): void {
    if (!hasSpoken() && !isAnswered) return
    heardAt = turn
    isAnswered = false
    isSilent = false
  }

  /** For how many whole turns something has been asked and nothing was heard. */
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
