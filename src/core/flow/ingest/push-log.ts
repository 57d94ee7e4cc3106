import type { LogDigest } from '../log-digest.ts'
import type { Part } from '../relay.ts'

const NOT_STORED = 'pushes were answered 503: they could not be stored'

/** The log messages for outcomes that operators should know about. Other outcomes are only counted. */
const MESSAGES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    signature_invalid: 'pushes were refused: the signature does not match; somebody else sends them, or the key has changed',
    wrong_path: 'pushes were answered 404: they came to another path than webhook.path; parcel-relay status shows to which',
    quarantined: 'pushes were quarantined: they are authentic, but not valid events',
    body_too_large: 'pushes were refused: they are larger than webhook.bodyBytesMax',
    overloaded: 'pushes were answered 503: too many came at once',
    storage_unavailable: NOT_STORED,
  }),
)

export interface PushCauses {
  /** The addresses whose signatures did not match. */
  readonly senders?: readonly string[]
  /** Why pushes were quarantined. */
  readonly reasons?: readonly string[]
}

/** Logs refused and quarantined pushes, at most one line per minute and outcome. */
export interface PushLog {
  /** Counts pushes with an outcome. */
  add(outcome: string, count: number, causes?: PushCauses): void
  /** Logs the last count of pushes that could not be stored. Call it when pushes can be stored again. */
  storedAgain(): void
}

export function createPushLog(digest: LogDigest): PushLog {
  return {
    add(outcome, count, { senders = [], reasons = [] } = {}) {
      const message = MESSAGES.get(outcome)
      if (message === undefined) return
      digest.add(message, count, outcome === 'signature_invalid' ? { senders } : outcome === 'quarantined' ? { reasons } : {})
    },
    storedAgain: () => digest.report(NOT_STORED),
  }
}

interface ExpiredPushesPorts extends Part<'log', 'warn'> {
  /** Monotonic milliseconds. */
  readonly monotonic: () => number
}

/** The outcomes of authentic pushes that are kept in the store. */
const KEPT = ['recorded', 'duplicate', 'quarantined', 'expired']
const MINUTE_MS = 60_000

/**
 * Warns of pushes that are too old to be recorded (DOMAIN 5.4), at once and then once a minute. If most pushes are too old, the warning asks
 * whether the clock of this machine is right. Call it with every outcome.
 */
export function createExpiredPushWarning({ log, monotonic }: ExpiredPushesPorts): (outcome: string, count: number) => void {
  let sinceMs = Number.NEGATIVE_INFINITY
  let expired = 0
  let kept = 0
  let isWarned = false
  return (outcome, count) => {
    if (!KEPT.includes(outcome)) return
    if (monotonic() - sinceMs >= MINUTE_MS) {
      sinceMs = monotonic()
      expired = 0
      kept = 0
      isWarned = false
    }
    kept += count
    if (outcome === 'expired') expired += count
    if (expired === 0 || isWarned) return
    isWarned = true
    const advice = 'they are in the inbox and can be reprocessed once it is corrected'
    if (expired > kept / 2)
      log.warn({ expired, kept }, `most pushes are older than retention.history: is the clock of this machine right? If not, ${advice}`)
    else log.warn({ expired, kept }, 'pushes older than retention.history were not recorded: they are kept in the inbox')
  }
}
