import { createFailureLog } from '../../failure-log.ts'
import type { Clock, Log } from '../../ports.ts'
import type { HeldEndpoints } from './held-endpoints.ts'

/** Logs dispatch rounds that failed. */
export interface RoundFailures {
  /** Runs a round that writes down `results` results. Rejects with its error. */
  follow<Report>(results: number, round: () => Promise<Report>): Promise<Report>
}

export interface RoundFailuresPorts {
  readonly log: Log
  readonly clock: Pick<Clock, 'monotonic'>
  readonly held: Pick<HeldEndpoints, 'term' | 'signal'>
}

const UNWRITTEN = 'the results of deliveries could not be written down; retrying'
const UNCLAIMED = 'the next deliveries could not be read; retrying'
const LOST = 'this replica lost its endpoints before it had written down results: a replica that takes over sends these deliveries again'

/** Creates the log. A round that fails because other replicas take over is no failure, and what it did is repeated. */
export function createRoundFailures({ log, clock, held }: RoundFailuresPorts): RoundFailures {
  const failures = createFailureLog({ log, clock })
  let isLossLogged = false
  function add(err: unknown, results: number, isLost: boolean): void {
    if (!isLost) failures.add('error', { err, results }, results > 0 ? UNWRITTEN : UNCLAIMED)
    else if (results > 0 && !isLossLogged) {
      log.warn({ results }, LOST)
      isLossLogged = true
    } else log.debug({ err, results }, 'a dispatch round failed')
  }

  return {
    async follow(results, round) {
      const term = held.term()
      try {
        const report = await round()
        isLossLogged = false
        return report
      } catch (error) {
        add(error, results, term !== held.term() || held.signal().aborted)
        throw error
      }
    },
  }
}
