import type { Part, Relay } from './relay-part.ts'

/** Logs the first event of a kind at once, counts later events, and logs their count once a minute. */
export type LogDigest = ReturnType<typeof createLogDigest>

export type Causes = Readonly<Record<string, readonly string[]>>

const EVERY_MS = 60_000
const CAUSES_MAX = 5

interface Counted {
  count: number
  causes: Causes
  readonly sinceMs: number
}

export function createLogDigest({ log, clock }: Pick<Relay, 'clock'> & Part<'log', 'warn'>) {
  const counted = new Map<string, Counted>()

  function flushOne(message: string, { count, causes, sinceMs }: Counted): void {
    const nowMs = clock.monotonic()
    if (count === 0) {
      counted.delete(message)
      return
    }
    log.warn({ count, seconds: Math.round((nowMs - sinceMs) / 1000), ...named(causes) }, message)
    counted.set(message, { count: 0, causes: {}, sinceMs: nowMs })
  }

  function flushOlderThan(ageMs: number): void {
    const nowMs = clock.monotonic()
    for (const [message, one] of counted) if (nowMs - one.sinceMs >= ageMs) flushOne(message, one)
  }

  return {
    /**
     * Logs or counts events. Events with the same `message` are of the same kind. `causes`: who or what caused the events, by the name of the
     * field in the log. A line lists the last few causes.
     */
    add(message: string, count: number, causes: Causes = {}) {
      const known = counted.get(message)
      if (known !== undefined) {
        known.count += count
        known.causes = joined(causes, known.causes)
        return
      }
      log.warn({ count, ...named(causes) }, message)
      counted.set(message, { count: 0, causes: {}, sinceMs: clock.monotonic() })
    },
    /** Logs the count of a message now. Call it when the trouble is over. */
    report(message: string) {
      const one = counted.get(message)
      if (one !== undefined && one.count > 0) flushOne(message, one)
    },
    /** Logs every count that is a minute old. Call it every few seconds. */
    flush: () => flushOlderThan(EVERY_MS),
    /** Logs all counts. Call it when the relay stops. */
    end: () => flushOlderThan(0),
  }
}

function joined(newer: Causes, older: Causes): Causes {
  const names = new Set([...Object.keys(newer), ...Object.keys(older)])
  return Object.fromEntries(
    [...names].map((name) => [name, [...new Set([...(newer[name] ?? []), ...(older[name] ?? [])])].slice(0, CAUSES_MAX)]),
  )
}

function named(causes: Causes): object {
  const some = Object.entries(causes).filter(([, texts]) => texts.length > 0)
  return Object.fromEntries(some.map(([name, texts]) => [name, texts.slice(0, CAUSES_MAX)]))
}

/** Logs failures that may come many times a second while something is broken. */
export interface FailureLog {
  /**
   * Logs a failure at `level`. For ten seconds after that, failures of the same kind are logged at level `debug`. Failures are of the same
   * kind if message and error are equal.
   */
  add(level: 'error' | 'warn', fields: { readonly err: unknown; readonly [name: string]: unknown }, message: string): void
}

const QUIET_MS = 10_000
const KINDS_MAX = 100

export function createFailureLog({ log, clock }: Pick<Relay, 'log'> & Part<'clock', 'monotonic'>): FailureLog {
  const loggedAtMs = new Map<string, number>()
  return {
    add(level, fields, message) {
      const kind = `${message}: ${String(fields.err)}`
      const nowMs = clock.monotonic()
      const isKnown = nowMs - (loggedAtMs.get(kind) ?? Number.NEGATIVE_INFINITY) < QUIET_MS
      if (!isKnown) {
        if (loggedAtMs.size >= KINDS_MAX) loggedAtMs.clear()
        loggedAtMs.set(kind, nowMs)
      }
      log[isKnown ? 'debug' : level](fields, message)
    },
  }
}

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

interface PushCauses {
  /** The addresses whose signatures did not match. */
  readonly senders?: readonly string[]
  /** Why pushes were quarantined. */
  readonly reasons?: readonly string[]
}

/** Logs refused and quarantined pushes, at most one line per minute and outcome. */
export function createPushLog(digest: LogDigest) {
  return {
    /** Counts pushes with an outcome. */
    add(outcome: string, count: number, { senders = [], reasons = [] }: PushCauses = {}) {
      const message = MESSAGES.get(outcome)
      if (message === undefined) return
      digest.add(message, count, outcome === 'signature_invalid' ? { senders } : outcome === 'quarantined' ? { reasons } : {})
    },
    /** Logs the last count of pushes that could not be stored. Call it when pushes can be stored again. */
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
