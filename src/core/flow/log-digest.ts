import type { Part, Relay } from './relay.ts'

/** Logs the first event of a kind at once, counts later events, and logs their count once a minute. */
export interface LogDigest {
  /**
   * Logs or counts events. Events with the same `message` are of the same kind. `causes`: who or what caused the events, by the name of the
   * field in the log. A line lists the last few causes.
   */
  add(message: string, count: number, causes?: Causes): void
  /** Logs the count of a message now. Call it when the trouble is over. */
  report(message: string): void
  /** Logs every count that is a minute old. Call it every few seconds. */
  flush(): void
  /** Logs all counts. Call it when the relay stops. */
  end(): void
}

export type Causes = Readonly<Record<string, readonly string[]>>

const EVERY_MS = 60_000
const CAUSES_MAX = 5

interface Counted {
  count: number
  causes: Causes
  readonly sinceMs: number
}

export function createLogDigest({ log, clock }: Pick<Relay, 'clock'> & Part<'log', 'warn'>): LogDigest {
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
    add(message, count, causes = {}) {
      const known = counted.get(message)
      if (known !== undefined) {
        known.count += count
        known.causes = joined(causes, known.causes)
        return
      }
      log.warn({ count, ...named(causes) }, message)
      counted.set(message, { count: 0, causes: {}, sinceMs: clock.monotonic() })
    },
    report(message) {
      const one = counted.get(message)
      if (one !== undefined && one.count > 0) flushOne(message, one)
    },
    flush: () => flushOlderThan(EVERY_MS),
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
