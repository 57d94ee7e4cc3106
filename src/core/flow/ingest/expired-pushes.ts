import type { Part } from '../relay.ts'

export interface ExpiredPushesPorts extends Part<'log', 'warn'> {
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
