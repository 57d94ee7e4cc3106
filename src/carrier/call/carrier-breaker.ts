import { admit, afterAnswer, afterFailure, afterNoVerdict, type Breaker, closedBreaker, startProbe } from '../../domain/polling/breaker.ts'
import type { CallPriority, CarrierState, UnavailableReason } from '../../domain/polling/carrier-answer.ts'
import type { Clock, Log } from '../../flow/ports.ts'
import type { StatusOutcome } from './status-call.ts'

/** The failures that count against the carrier: failures of the carrier itself or of the network. */
const FAILURES: ReadonlySet<UnavailableReason> = new Set(['network', 'timeout', 'server_error'])

/** The part of a question to the carrier that the breaker looks at. */
interface Question {
  readonly identifier: string
  readonly priority: CallPriority
}

/** The circuit breaker for calls to the carrier. */
export interface CarrierBreaker {
  /** Runs `ask` unless the breaker is open. If `ask` returns null, the call was withdrawn, and counts neither as a failure nor as an answer. */
  guard(question: Question, ask: () => Promise<StatusOutcome | null>): Promise<StatusOutcome | null>
  state(): CarrierState['breaker']
}

/** Protects a failing carrier from more calls (see `domain/polling/breaker`), and logs when this begins and ends. */
export function createCarrierBreaker(clock: Clock, log: Log, random: () => number = Math.random): CarrierBreaker {
  let breaker = closedBreaker

  const after = (outcome: StatusOutcome | null, identifier: string, wasProbe: boolean): Breaker => {
    if (outcome === null) return afterNoVerdict(breaker, wasProbe)
    if (outcome.kind !== 'unavailable') return afterAnswer(breaker, identifier)
    if (!outcome.conclusive || !FAILURES.has(outcome.reason)) return afterNoVerdict(breaker, wasProbe)
    const question = outcome.ofQuestion === true ? identifier : null
    return afterFailure(breaker, { question, wasProbe, nowMs: clock.monotonic(), random: random() })
  }
  const settle = (outcome: StatusOutcome | null, identifier: string, wasProbe: boolean): void => {
    const before = breaker
    breaker = after(outcome, identifier, wasProbe)
    const { state, failures, restUntilMs } = breaker
    if (before.state === 'closed' && state === 'open') {
      log.debug({ failures, restMs: Math.round(restUntilMs - clock.monotonic()) }, 'the carrier fails repeatedly: calls pause')
    }
    if (before.state !== 'closed' && state === 'closed') log.debug({}, 'the carrier is asked again')
  }

  return {
    async guard({ priority, identifier }, ask) {
      const admission = admit(breaker, priority, identifier, clock.monotonic())
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
        settle(outcome, identifier, wasProbe)
      }
    },
    state() {
      const { state, failures, restUntilMs } = breaker
      return { state, failures, restMs: state === 'closed' ? 0 : Math.max(0, Math.round(restUntilMs - clock.monotonic())) }
    },
  }
}
