import { clampRetryAfterMs } from '../domain/retry-after.ts'
import type { CarrierAnswer, CarrierState, Clock, Log, UnavailableReason } from '../flow/ports.ts'
import type { StatusOutcome } from './status-call.ts'

export interface CarrierNews {
  /** Takes note of how a question ended, and says it in the words of the port. */
  tell(outcome: StatusOutcome): CarrierAnswer
  latest(): Pick<CarrierState, 'lastAnswerAtMs' | 'lastFailure'>
}

/** Remembers how questions ended, and logs when that changes: trouble that lasts is one line, not one for every question. */
export function createCarrierNews(clock: Clock, log: Log): CarrierNews {
  let lastAnswerAtMs: CarrierState['lastAnswerAtMs'] = null
  let lastFailure: CarrierState['lastFailure'] = null
  let troubledBy: UnavailableReason | null = null

  const tellTrouble = ({ reason, detail, retryAfterMs, telling }: StatusOutcome & { kind: 'unavailable' }): void => {
    // Our own budget is no trouble of the carrier's, and may be short many times a second. While it rests, nothing new is known.
    const isOurs = reason === 'budget' || reason === 'resting' || (reason === 'timeout' && !telling)
    if (reason === 'budget' || !isOurs) lastFailure = { reason, atMs: clock.now() }
    const known = isOurs || reason === troubledBy
    const fields = { reason, detail, retryAfterMs }
    if (known) log.debug(fields, 'the carrier could not be asked')
    else if (reason === 'redirect') log.error(fields, 'the carrier redirects, which is not followed')
    else log.warn(fields, 'the carrier could not be asked')
    if (!isOurs) troubledBy = reason
  }

  return {
    tell(outcome) {
      if (outcome.kind === 'unavailable') {
        const { reason, retryAfterMs } = outcome
        tellTrouble(outcome)
        return { kind: 'unavailable', reason, ...(retryAfterMs === undefined ? {} : { retryAfterMs: clampRetryAfterMs(retryAfterMs) }) }
      }
      if (troubledBy !== null) log.info({ after: troubledBy }, 'the carrier answers again')
      troubledBy = null
      lastAnswerAtMs = clock.now()
      return outcome
    },
    latest: () => ({ lastAnswerAtMs, lastFailure }),
  }
}
