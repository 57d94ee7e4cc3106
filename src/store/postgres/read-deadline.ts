import { StorageFailure } from '../../domain/errors.ts'

/** Time is counted in turns of a timer, so that a process which stood still itself, for however long, has not waited. */
const TURN_MS = 100
/** Apps get their answer, be it 503, within a second. */
const TURNS_MAX = 9

export interface ReadDeadline {
  /**
   * Runs a read that somebody waits for. Rejects with a `StorageFailure` when it has waited for 0.9 s and the server has not answered any other read for as
   * long either: one that is only busy goes on answering.
   */
  run<T>(read: () => Promise<T>): Promise<T>
  end(): void
}

interface Waiting {
  turns: number
  fail(error: StorageFailure): void
}

export function createReadDeadline(): ReadDeadline {
  const waiting = new Set<Waiting>()
  let silentTurns = 0
  const timer = setInterval(() => {
    silentTurns += 1
    for (const one of waiting) {
      one.turns += 1
      if (Math.min(one.turns, silentTurns) >= TURNS_MAX) one.fail(new StorageFailure('the database does not answer in time'))
    }
  }, TURN_MS).unref()

  return {
    async run(read) {
      const { promise: late, reject } = Promise.withResolvers<never>()
      const one = { turns: 0, fail: reject }
      waiting.add(one)
      const asked = read()
      // Also what is no longer waited for shows that the server is there; a connection that is lost does not.
      asked.then(
        () => {
          silentTurns = 0
        },
        () => undefined,
      )
      try {
        return await Promise.race([asked, late])
      } finally {
        waiting.delete(one)
      }
    },
    end: () => clearInterval(timer),
  }
}
