import { clampRetryAfterMs } from '../../domain/instant.ts'
import type { CarrierAnswer, CarrierOutage, CarrierState, LastFailure, UnavailableReason } from '../../domain/polling/carrier-answer.ts'
import { knownReason, tlsFaultOf } from '../../domain/system-reason.ts'
import type { Clock, Log } from '../../flow/ports.ts'
import type { StatusOutcome } from './status-call.ts'

export type CarrierLog = ReturnType<typeof createCarrierLog>

type Trouble = 'down' | 'rate_limited' | 'credentials' | 'redirect' | 'unusable_answers'

/**
 * The kind of trouble behind each reason. While one kind lasts, its further failures are counted instead of logged. Null: a limit of the relay
 * itself, which is no trouble.
 */
const TROUBLES: Readonly<Record<UnavailableReason, Trouble | null>> = {
  budget: null,
  resting: null,
  network: 'down',
  timeout: 'down',
  server_error: 'down',
  rate_limited: 'rate_limited',
  credentials: 'credentials',
  redirect: 'redirect',
  bad_response: 'unusable_answers',
  token_bad_response: 'unusable_answers',
  rejected: 'unusable_answers',
}

const MESSAGES: Readonly<Record<Trouble, string>> = {
  down: 'the carrier is down, or cannot be reached',
  rate_limited: 'the carrier asks for fewer calls: the relay makes none until the time in its Retry-After is over',
  credentials: 'the carrier gives no token, so it cannot be asked',
  redirect: 'the carrier answers with a redirect, which the relay does not follow',
  unusable_answers: 'the answers of the carrier cannot be used',
}

/** At most this many lines about the beginning or end of an outage are logged per minute, because a carrier may keep failing and recovering. */
const LINES_MAX = 10
const LINES_EVERY_MS = 60_000

/** An outage that the log has reported. Its kind of trouble may change while it lasts. */
interface Outage {
  /** Null: an earlier run or another replica has reported it. */
  readonly trouble: Trouble | null
  readonly since: Date
  readonly fromMs: number
  readonly failures: number
  /** Whether it began before this run or at another replica, so that `failures` are not all. */
  readonly isResumed: boolean
}

/** The failures that no log line has counted yet, with the fields of the last failure. */
interface Uncounted {
  readonly count: number
  readonly trouble: Trouble
  readonly fields: FailureFields
}

type Failure = StatusOutcome & { kind: 'unavailable' }
interface FailureFields extends Pick<Failure, 'reason' | 'detail'> {
  readonly url: string | undefined
  readonly retryAfterMs: number | undefined
}

/** Writes a line when an outage begins, then a line a minute with the number of failures, and a line when the outage ends. */
export function createCarrierLog(clock: Clock, log: Log) {
  let lastAnswerAtMs: CarrierState['lastAnswerAtMs'] = null
  let lastFailure: CarrierState['lastFailure'] = null
  /** The last failure of a login outside of a poll. If `lastFailure` is still this one, the next login that works clears it. */
  let loginFailure: CarrierState['lastFailure'] = null
  /** The last failure that the store knew of, if `lastFailure` is still this one. */
  let toldFailure: CarrierState['lastFailure'] = null
  let outage: Outage | null = null
  let uncounted: Uncounted | null = null
  let lastLineAtMs = Number.NEGATIVE_INFINITY
  const mayLog = createLineLimit(clock)

  const logTrouble = ({ reason, detail, said = '', url, retryAfterMs, conclusive }: Failure): void => {
    // If the time ran out while the call waited in the relay's own queue, the carrier is not to blame.
    const trouble = reason === 'timeout' && !conclusive ? null : TROUBLES[reason]
    if (reason === 'budget' || trouble !== null)
      lastFailure = { reason, ...causeIn(detail), ...(said === '' ? {} : { said }), atMs: clock.now() }
    const fields = { reason, detail, url, retryAfterMs }
    if (trouble === null) {
      log.debug(fields, NOT_ASKED)
      return
    }
    const known = outage ?? outageSince(clock.now(), trouble, clock)
    const failures = known.failures + 1
    if (trouble === outage?.trouble || !mayLog()) {
      if (outage !== null) outage = { ...outage, failures }
      uncounted = { count: (uncounted?.count ?? 0) + 1, trouble, fields }
      log.debug(fields, NOT_ASKED)
      return
    }
    outage = { ...known, trouble, failures }
    lastLineAtMs = clock.monotonic()
    log[levelOf(trouble)](known.trouble === null ? { ...fields, since: known.since } : fields, messageOf(trouble, fields))
  }

  const endOutage = (): void => {
    if (outage === null || !mayLog()) return
    log.info(endOf(outage, clock), 'the carrier answers again')
    outage = null
    uncounted = null
  }

  return {
    /** Returns the outcome without the details that only the log needs. */
    record(outcome: StatusOutcome): CarrierAnswer {
      if (outcome.kind === 'unavailable') {
        const { reason, retryAfterMs } = outcome
        logTrouble(outcome)
        return { kind: 'unavailable', reason, ...(retryAfterMs === undefined ? {} : { retryAfterMs: clampRetryAfterMs(retryAfterMs) }) }
      }
      endOutage()
      lastAnswerAtMs = clock.now()
      return outcome
    },
    /** Notes that a login outside of a poll has failed. */
    loginFailed(failure: Omit<Failure, 'kind'>) {
      const before = lastFailure
      logTrouble({ kind: 'unavailable', ...failure })
      if (lastFailure !== before) loginFailure = lastFailure
    },
    /** Notes that a login outside of a poll has worked. If the last failure was such a login, the outage is over. */
    loggedIn() {
      if (loginFailure === null || lastFailure !== loginFailure) return
      lastFailure = null
      endOutage()
    },
    /** Goes on with an outage that the store knows, from an earlier run or another replica; null: it knows of none any more. */
    resume(known: CarrierOutage | null) {
      if (known === null) {
        if (lastFailure === toldFailure) lastFailure = null
        endOutage()
        return
      }
      if (lastFailure === null) lastFailure = toldFailure = known.failure
      if (outage !== null) return
      outage = { ...outageSince(known.sinceMs, null, clock), isResumed: true }
      log.warn({ since: outage.since }, 'the carrier has answered no question since then: one question at a time is tried')
    },
    /**
     * Logs how many calls have failed since the last line about an outage, if that line is a minute old. Call it every few seconds. `sinceMs`: when the
     * carrier stopped answering, as everybody is told; null: it answers some questions.
     */
    flush(sinceMs: number | null) {
      if (uncounted === null || clock.monotonic() - lastLineAtMs < LINES_EVERY_MS) return
      const { count, trouble, fields } = uncounted
      const lasting =
        outage === null ? {} : { since: sinceMs === null ? outage.since : new Date(sinceMs), seconds: secondsSince(outage.fromMs, clock) }
      log[levelOf(trouble)]({ ...fields, count, ...lasting }, outage === null ? 'calls to the carrier failed' : messageOf(trouble, fields))
      uncounted = null
      lastLineAtMs = clock.monotonic()
    },
    latest: (): Pick<CarrierState, 'lastAnswerAtMs' | 'lastFailure'> => ({ lastAnswerAtMs, lastFailure }),
  }
}

/** Reads the fault of TLS or the HTTP status of the reply from the detail of a failed call. */
export function causeIn(detail: string): Pick<LastFailure, 'tls' | 'status'> {
  const tls = tlsFaultOf(detail)
  if (tls !== null) return { tls }
  const status = /^status (\d{3})$/.exec(detail)?.[1]
  return status === undefined ? {} : { status: Number(status) }
}

const NOT_ASKED = 'the carrier could not be asked'

/** Says the cause in words, because the field `detail` holds a code. */
function messageOf(trouble: Trouble, { reason, detail }: FailureFields): string {
  const cause = reason === 'timeout' ? 'there was no answer in time' : reason === 'network' ? knownReason(detail) : null
  return cause === null ? MESSAGES[trouble] : `${MESSAGES[trouble]}: ${cause}`
}

/** A redirect is a mistake in the config, which does not go away by itself. */
function levelOf(trouble: Trouble): 'error' | 'warn' {
  return trouble === 'redirect' ? 'error' : 'warn'
}

function outageSince(sinceMs: number, trouble: Outage['trouble'], clock: Pick<Clock, 'now' | 'monotonic'>): Outage {
  return {
    trouble,
    since: new Date(sinceMs),
    fromMs: clock.monotonic() - Math.max(0, clock.now() - sinceMs),
    failures: 0,
    isResumed: false,
  }
}

/** `after`: what its trouble was, such as `down` or `unusable_answers`. */
function endOf({ trouble, failures, isResumed, fromMs }: Outage, clock: Pick<Clock, 'monotonic'>): object {
  return {
    ...(trouble === null ? {} : { after: trouble }),
    [isResumed ? 'failuresSinceStart' : 'failures']: failures,
    seconds: secondsSince(fromMs, clock),
  }
}

function secondsSince(fromMs: number, clock: Pick<Clock, 'monotonic'>): number {
  return Math.round((clock.monotonic() - fromMs) / 1000)
}

function createLineLimit(clock: Pick<Clock, 'monotonic'>): () => boolean {
  let minute = { fromMs: Number.NEGATIVE_INFINITY, lines: 0 }
  return () => {
    const nowMs = clock.monotonic()
    if (nowMs - minute.fromMs >= LINES_EVERY_MS) minute = { fromMs: nowMs, lines: 0 }
    minute = { ...minute, lines: minute.lines + 1 }
    return minute.lines <= LINES_MAX
  }
}
