import {
  admit,
  afterAnswer,
  afterFailure,
  afterNoVerdict,
  type Breaker,
  type CallFailure,
  CHECK_AFTER_MS,
  closedBreaker,
  isAnswer,
  isCheckDue,
  isDoubtful,
  openBreaker,
  resumeOutage,
  startProbe,
} from '../../domain/polling/breaker.ts'
import { type CallPriority, type CarrierOutage, type CarrierState, lacksAnswer } from '../../domain/polling/carrier-answer.ts'
import type { Relay } from '../../flow/relay-part.ts'
import type { StatusOutcome } from './status-call.ts'

/** The part of a question to the carrier that the breaker looks at. */
export interface Question {
  readonly identifier: string
  readonly language: string
  readonly priority: CallPriority
  /** Whether no parcel has the identifier. */
  readonly ofNobody?: boolean | undefined
}

type Asked = Pick<Question, 'identifier' | 'ofNobody'>

export interface CarrierBreakerPorts extends Pick<Relay, 'clock' | 'log'> {
  /** Returns identifiers about which the carrier gave an answer when they were last asked about; empty: there are none. */
  readonly answeredBefore?: (() => Promise<readonly string[]>) | undefined
  /** Whether a parcel was erased, so that the carrier must not be asked about it. Absent: none ever is. */
  readonly isErased?: ((identifier: string) => Promise<boolean>) | undefined
  /** Asks a question that only checks whether the carrier answers. */
  readonly check: (question: Omit<Question, 'priority'>) => Promise<StatusOutcome | null>
  readonly random?: () => number
}

/** Protects a failing carrier from more calls (see `core/domain/polling/breaker`), and logs when this begins and ends. */
export function createCarrierBreaker(ports: CarrierBreakerPorts) {
  const { clock, log, answeredBefore, isErased, random = Math.random } = ports
  let breaker = closedBreaker
  /** When the first of the calls without an answer ended, by the wall clock; null: there was none. All who ask are told the same. */
  let sinceMs: number | null = null
  let lastFailed: Omit<Question, 'priority'> | null = null
  let resumedFromMs: number | null = null
  let isChecking = false
  let checkedAtMs = Number.NEGATIVE_INFINITY

  const become = (next: Breaker): void => {
    const before = breaker
    breaker = next
    const { unansweredSinceMs } = next
    if (unansweredSinceMs !== before.unansweredSinceMs)
      sinceMs = unansweredSinceMs === null ? null : Math.round(clock.now() - (clock.monotonic() - unansweredSinceMs))
    const { state, unanswered, restUntilMs } = breaker
    if (before.state === 'closed' && state === 'open') {
      log.debug({ unanswered, restMs: Math.round(restUntilMs - clock.monotonic()) }, 'the carrier answers no question: calls pause')
    }
    if (before.state !== 'closed' && state === 'closed') log.debug({}, 'the carrier is asked again')
  }
  /** Whether an outcome says something about the carrier: it is a failure, or `isAnswer`. */
  const isTelling = (outcome: StatusOutcome, ofNobody: boolean): boolean => tells(breaker, outcome, ofNobody, clock.monotonic())
  const after = (outcome: StatusOutcome | null, asked: Asked, as: CallFailure['as']): Breaker =>
    afterOutcome(breaker, outcome, asked, { as, nowMs: clock.monotonic(), random })

  /** `mayRepeat`: if there is no parcel that was answered before, ask the question again that has failed last. */
  async function check(mayRepeat: boolean): Promise<void> {
    if (isChecking || clock.monotonic() - checkedAtMs < CHECK_AFTER_MS) return
    isChecking = true
    try {
      const known = answeredBefore === undefined ? [] : await answeredBefore().catch((): readonly string[] => [])
      // If the store cannot tell, the question is forgotten too.
      if (lastFailed !== null && (await isErased?.(lastFailed.identifier).catch(() => true)) === true) lastFailed = null
      const others = known.filter((one) => !breaker.suspects.has(one) && !breaker.failing.has(one))
      const identifier = others[Math.floor(random() * others.length)] ?? (mayRepeat ? lastFailed?.identifier : undefined)
      if (identifier !== undefined && lastFailed !== null) {
        checkedAtMs = clock.monotonic()
        const outcome = await ports.check({ identifier, language: lastFailed.language }).catch(() => null)
        become(after(outcome, { identifier }, 'check'))
      } else if (isDoubtful(breaker, clock.monotonic())) {
        become(openBreaker(breaker, { nowMs: clock.monotonic(), random: random() }))
      }
    } finally {
      isChecking = false
    }
  }

  const count = (question: Omit<Question, 'priority'>, outcome: StatusOutcome | null, as: CallFailure['as']): void => {
    if (outcome?.kind === 'unavailable' && outcome.conclusive) lastFailed = question
    become(after(outcome, question, as))
    if (isDoubtful(breaker, clock.monotonic())) void check(false)
  }

  return {
    /** Runs `ask` unless the breaker is open. If `ask` returns null, the call was withdrawn, and counts neither as a failure nor as an answer. */
    async guard(question: Question, ask: () => Promise<StatusOutcome | null>): Promise<StatusOutcome | null> {
      const { priority, identifier } = question
      const admission = admit(breaker, priority, identifier, clock.monotonic())
      if (admission.kind === 'rest') {
        return { kind: 'unavailable', reason: 'resting', retryAfterMs: admission.restMs, detail: 'breaker', conclusive: false }
      }
      const as = admission.kind === 'probe' ? 'probe' : 'call'
      if (as === 'probe') breaker = startProbe(breaker)
      let outcome: StatusOutcome | null = null
      try {
        outcome = await ask()
        return outcome
      } finally {
        count(question, outcome, as)
      }
    },
    /** Counts a question of an operator's, which is asked even while calls pause. It may be about the same parcel each time. */
    checked: (question: Omit<Question, 'priority'>, outcome: StatusOutcome) => count(question, outcome, 'call'),
    isTelling,
    /**
     * Goes on with an outage that the store knows, from an earlier run or another replica; null: the store knows of none any more. Each outage is
     * taken up once, so that an answer ends it here even before it has ended in the store. False: this is known.
     */
    resume(outage: CarrierOutage | null) {
      const fromMs = outage?.sinceMs ?? null
      if (fromMs === resumedFromMs) return false
      resumedFromMs = fromMs
      become(resumed(breaker, outage, clock))
      sinceMs = fromMs
      return true
    },
    /** Checks whether the carrier answers at all, if that is in doubt. Call it every second or so. Never rejects. */
    async lookAgain() {
      if (isCheckDue(breaker, clock.monotonic())) await check(true)
    },
    state: (): CarrierState['breaker'] => presentBreaker(breaker, sinceMs, clock),
  }
}

function tells(breaker: Breaker, outcome: StatusOutcome, ofNobody: boolean, nowMs: number): boolean {
  return outcome.kind === 'unavailable' || isAnswer(breaker, outcome.kind, { ofNobody, nowMs })
}

function afterOutcome(
  breaker: Breaker,
  outcome: StatusOutcome | null,
  { identifier, ofNobody = false }: Asked,
  { as, nowMs, random }: Pick<CallFailure, 'as' | 'nowMs'> & { readonly random: () => number },
): Breaker {
  const isTold = outcome !== null && tells(breaker, outcome, ofNobody, nowMs)
  if (isTold && outcome.kind !== 'unavailable') return afterAnswer(breaker, identifier)
  const counted = outcome?.kind === 'unavailable' && outcome.conclusive ? lacksAnswer(outcome.reason) : null
  if (outcome?.kind !== 'unavailable' || counted === null) return afterNoVerdict(breaker, as === 'probe')
  const question = outcome.ofQuestion === true ? identifier : null
  return afterFailure(breaker, { question, isRefusal: counted === 'refusal', ofNobody, as, nowMs, random: random() })
}

function resumed(breaker: Breaker, outage: CarrierOutage | null, clock: Pick<Relay['clock'], 'now' | 'monotonic'>): Breaker {
  if (outage === null) return { ...closedBreaker, failing: breaker.failing }
  if (breaker.state !== 'closed') return breaker
  const isRefused = outage.failure !== null && lacksAnswer(outage.failure.reason) === 'refusal'
  const nowMs = clock.monotonic()
  return resumeOutage({ nowMs, sinceMs: nowMs - Math.max(0, clock.now() - outage.sinceMs), isRefused })
}

function presentBreaker(
  { state, failures, unanswered: count, restUntilMs }: Breaker,
  sinceMs: number | null,
  clock: Pick<Relay['clock'], 'now' | 'monotonic'>,
): CarrierState['breaker'] {
  // The clock may have been put back since.
  const fromMs = Math.min(sinceMs ?? Number.POSITIVE_INFINITY, clock.now())
  if (state === 'closed') return { state, failures, restMs: 0, ...(count === 0 ? {} : { unanswered: { count, sinceMs: fromMs } }) }
  return { state, failures: count, restMs: Math.max(0, Math.round(restUntilMs - clock.monotonic())), sinceMs: fromMs }
}
