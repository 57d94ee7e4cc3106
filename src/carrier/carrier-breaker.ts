import { admit, afterAnswer, afterFailure, afterNoVerdict, closedBreaker, startProbe } from '../domain/polling/breaker.ts'
import type { CallPriority, CarrierState, UnavailableReason } from '../domain/polling/carrier-answer.ts'
import type { Clock, Log } from '../flow/ports.ts'
import type { StatusOutcome } from './status-call.ts'

/** Failures of the carrier or of the network: other calls would fail too. */
const FAILURES: ReadonlySet<UnavailableReason> = new Set(['network', 'timeout', 'server_error'])

/** The circuit breaker for calls to the carrier. */
export interface CarrierBreaker {
  /** Runs `ask` unless the breaker is open. `ask` returns null if the call was withdrawn. */
  guard(asker: CallPriority, ask: () => Promise<StatusOutcome | null>): Promise<StatusOutcome | null>
  state(): CarrierState['breaker']
}

/** Protects a failing carrier from further calls (see `domain/polling/breaker`), and logs when that starts and ends. */
export function createCarrierBreaker(clock: Clock, log: Log, random: () => number = Math.random): CarrierBreaker {
  let breaker = closedBreaker

  const settle = (outcome: StatusOutcome | null, wasProbe: boolean): void => {
    const before = breaker
    if (outcome === null) breaker = afterNoVerdict(breaker, wasProbe)
    else if (outcome.kind !== 'unavailable') breaker = afterAnswer()
    else if (outcome.conclusive && FAILURES.has(outcome.reason)) breaker = afterFailure(breaker, wasProbe, clock.monotonic(), random())
    else breaker = afterNoVerdict(breaker, wasProbe)
    const { state, failures, restUntilMs } = breaker
    if (before.state === 'closed' && state === 'open') {
      log.debug(
        { failures, restMs: Math.round(restUntilMs - clock.monotonic()) },
        'the carrier fails repeatedly: it is left alone for a while',
      )
    }
    if (before.state !== 'closed' && state === 'closed') log.debug({}, 'the carrier is asked again')
  }

  return {
    async guard(asker, ask) {
      const admission = admit(breaker, asker, clock.monotonic())
      if (admission.kind === 'rest') {
        return { kind: 'unavailable', reason: 'resting', retryAfterMs: admission.restMs, detail: 'breaker', conclusive: false }
      }
      const wasProbe = admission.kind === 'probe'
      if (wasProbe) breaker = startProbe(breaker)
      let outcome: StatusOutcome | null = null
      try {
        outcome = await ask()
        return outcome
      } finally {
        settle(outcome, wasProbe)
      }
    },
    state() {
      const { state, failures, restUntilMs } = breaker
      return { state, failures, restMs: state === 'closed' ? 0 : Math.max(0, Math.round(restUntilMs - clock.monotonic())) }
    },
  }
}
