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

/** Settles the attempts that ended and claims the next deliveries, both in one transaction of the writer. */
export interface DispatchRounds {
  /** Keeps an attempt that ended for the next round. Returns whether it is the first. */
  add(attempt: SettledAttempt): boolean
  hasEnded(): boolean
  /** Endpoints, or the order of what waits, have changed. */
  review(): void
  /** Whether a round has reported since the last such change. */
  isReviewed(): boolean
  isDue(): boolean
  /** Returns what was claimed; nothing if the store failed, and then what ended waits for the next round. Never rejects. */
  run(claimsMax: number): Promise<readonly ClaimedDelivery[]>
}

export function createDispatchRounds(ports: DispatchRoundsPorts): DispatchRounds {
  const { write, clock, log, queues, rates, times } = ports
  let endpoints: readonly EndpointState[] = []
  let ended: SettledAttempt[] = []
  /** How many changes there were, and how many of them the last round has seen. */
  let reviews = 0
  let reviewed = 0

  function takeBack(settled: readonly SettledAttempt[], error: unknown): void {
    // Attempts that are not written down before the relay dies are made again.
    queues.notSettled(settled)
    ended = [...settled, ...ended]
    // An attempt whose result cannot be written down had better not begin.
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

/** Queues what was claimed, and plans when to look again. */
function takeIn(report: DispatchRoundReport, { clock, queues, rates, endpointLog, times }: DispatchRoundsPorts): void {
  queues.learn(report.endpoints, report.more)
  for (const { endpointId } of report.claimed) rates.started(endpointId)
  queues.claimed(report.claimed)
  const waitMs = rates.waitMs()
  if (waitMs !== null) times.lookAt(clock.now() + waitMs)
  endpointLog.follow(report.endpoints)
  if (report.nextAtMs !== null) times.lookAt(report.nextAtMs)
  // Claims of an endpoint that gets nothing now, and overtaken ones, are released.
  if (queues.release('surplus') + queues.releaseThese(report.overtaken) > 0) times.lookAt(clock.now())
}
