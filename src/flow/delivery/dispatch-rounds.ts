import type { ClaimedDelivery, DispatchRoundReport, SettledAttempt } from '../../domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import type { Clock, Log } from '../ports.ts'
import type { WriteSide } from '../write-side.ts'
import type { EndpointLog } from './endpoint-log.ts'
import type { EndpointQueues } from './endpoint-queues.ts'
import type { EndpointRates } from './endpoint-rates.ts'
import type { RoundTimes } from './round-times.ts'

export interface DispatchRoundsPorts {
  readonly write: Pick<WriteSide, 'dispatchRound'>
  readonly clock: Clock
  readonly log: Pick<Log, 'error'>
  readonly queues: EndpointQueues
  readonly rates: EndpointRates
  readonly endpointLog: EndpointLog
  readonly times: RoundTimes
}

/** Settles attempts that ended and claims the next deliveries, in one transaction of the writer. */
export interface DispatchRounds {
  /** Keeps an ended attempt for the next round. Returns whether it is the first. */
  add(attempt: SettledAttempt): boolean
  hasEnded(): boolean
  /** The endpoints, or the order of waiting deliveries, have changed. */
  review(): void
  /** Whether a round has reported since the last such change. */
  isReviewed(): boolean
  isDue(): boolean
  /** Returns the claims. If the store fails it returns none, and ended attempts wait for the next round. Never rejects. */
  run(claimsMax: number): Promise<readonly ClaimedDelivery[]>
}

export function createDispatchRounds(ports: DispatchRoundsPorts): DispatchRounds {
  const { write, clock, log, queues, rates, times } = ports
  let endpoints: readonly EndpointState[] = []
  let ended: SettledAttempt[] = []
  /** The number of changes, and how many of them the last round has seen. */
  let reviews = 0
  let reviewed = 0

  function takeBack(settled: readonly SettledAttempt[], error: unknown): void {
    // Attempts that are not written down before the relay dies are repeated.
    queues.notSettled(settled)
    ended = [...settled, ...ended]
    // No attempt should start whose result cannot be written down.
    queues.release('all')
    log.error({ err: error }, 'the results of deliveries could not be written down; retrying')
    times.retryLater()
  }

  const currentAllowance = () =>
    rates.allowance(
      endpoints.map(({ endpoint }) => endpoint),
      clock.monotonic(),
    )

  return {
    add(attempt) {
      const isFirst = ended.length === 0
      if (isFirst) times.beginWait()
      ended.push(attempt)
      return isFirst
    },
    hasEnded: () => ended.length > 0,
    review() {
      reviews += 1
    },
    isReviewed: () => reviewed === reviews,
    isDue: () => times.isLookDue() || (ended.length > 0 && (times.isWaitOver() || queues.isRoundWorthwhile())),
    async run(claimsMax) {
      const settled = ended
      const asOf = reviews
      ended = []
      times.clear()
      const beganMs = clock.monotonic()
      queues.settling()
      try {
        const inFlight = queues.inFlight()
        const report = await write.dispatchRound({ settled, inFlight, allowance: currentAllowance(), claimsMax, nowMs: clock.now() })
        queues.settled(settled)
        if (report.isBusy === true) times.spaceOut(beganMs)
        endpoints = report.endpoints
        takeIn(report, ports)
        reviewed = asOf
        return report.claimed
      } catch (error) {
        takeBack(settled, error)
        return []
      }
    },
  }
}

/** Queues the claims, and plans the next look. */
function takeIn(report: DispatchRoundReport, { clock, queues, rates, endpointLog, times }: DispatchRoundsPorts): void {
  queues.update(report.endpoints, report.more)
  for (const { endpointId } of report.claimed) rates.started(endpointId)
  queues.claimed(report.claimed)
  const waitMs = rates.waitMs()
  if (waitMs !== null) times.lookAt(clock.now() + waitMs)
  endpointLog.follow(report.endpoints)
  if (report.nextAtMs !== null) times.lookAt(report.nextAtMs)
  // Releases claims that were overtaken and those of endpoints that get nothing now.
  if (queues.release('surplus') + queues.releaseThese(report.overtaken) > 0) times.lookAt(clock.now())
}
