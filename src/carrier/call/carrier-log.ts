import type { CarrierAnswer, CarrierState, UnavailableReason } from '../../domain/polling/carrier-answer.ts'
import { clampRetryAfterMs } from '../../domain/retry-after.ts'
import type { Clock, Log } from '../../flow/ports.ts'
import type { StatusOutcome } from './status-call.ts'

export interface CarrierLog {
  /** Notes the outcome of a call, and returns it in the form of the port. */
  record(outcome: StatusOutcome): CarrierAnswer
  latest(): Pick<CarrierState, 'lastAnswerAtMs' | 'lastFailure'>
}

type Trouble = 'down' | 'rate_limited' | 'credentials' | 'redirect' | 'answers'

/**
 * The kind of trouble that each reason belongs to. While one kind lasts, a change of the reason is not logged again. Null: one of the
 * relay's own limits, which is no trouble.
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
  bad_response: 'answers',
  token_bad_response: 'answers',
  rejected: 'answers',
}

const MESSAGES: Readonly<Record<Trouble, string>> = {
  down: 'the carrier is down, or cannot be reached',
  rate_limited: 'the carrier asks for fewer calls: nothing is asked until its Retry-After is over',
  credentials: 'the carrier gives no token, so it cannot be asked',
  redirect: 'the carrier redirects, which is not followed',
  answers: 'the answers of the carrier cannot be used',
}

/** The maximum of lines per minute, because a carrier may keep failing and recovering. Further lines are logged at debug level. */
const LINES_MAX = 10
const LINES_EVERY_MS = 60_000

/** Creates the log. It logs changes only, so lasting trouble is one line, not one per call. */
export function createCarrierLog(clock: Clock, log: Log): CarrierLog {
  let lastAnswerAtMs: CarrierState['lastAnswerAtMs'] = null
  let lastFailure: CarrierState['lastFailure'] = null
  let loggedTrouble: Trouble | null = null
  let minute = { fromMs: Number.NEGATIVE_INFINITY, lines: 0 }

  const mayLog = (): boolean => {
    const nowMs = clock.monotonic()
    if (nowMs - minute.fromMs >= LINES_EVERY_MS) minute = { fromMs: nowMs, lines: 0 }
    minute = { ...minute, lines: minute.lines + 1 }
    return minute.lines <= LINES_MAX
  }
  const logTrouble = ({ reason, detail, retryAfterMs, conclusive }: StatusOutcome & { kind: 'unavailable' }): void => {
    // A call that was cut off while it waited in our queue is not the carrier's trouble.
    const trouble = reason === 'timeout' && !conclusive ? null : TROUBLES[reason]
    if (reason === 'budget' || trouble !== null) lastFailure = { reason, atMs: clock.now() }
    const fields = { reason, detail, retryAfterMs }
    if (trouble === null || trouble === loggedTrouble || !mayLog()) {
      log.debug(fields, 'the carrier could not be asked')
      return
    }
    loggedTrouble = trouble
    if (trouble === 'redirect') log.error(fields, MESSAGES[trouble])
    else log.warn(fields, MESSAGES[trouble])
  }

  return {
    record(outcome) {
      if (outcome.kind === 'unavailable') {
        const { reason, retryAfterMs } = outcome
        logTrouble(outcome)
        return { kind: 'unavailable', reason, ...(retryAfterMs === undefined ? {} : { retryAfterMs: clampRetryAfterMs(retryAfterMs) }) }
      }
      if (loggedTrouble !== null && mayLog()) {
        log.info({ after: loggedTrouble }, 'the carrier answers again')
        loggedTrouble = null
      }
      lastAnswerAtMs = clock.now()
      return outcome
    },
    latest: () => ({ lastAnswerAtMs, lastFailure }),
  }
}
