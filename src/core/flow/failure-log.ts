import type { Part, Relay } from './relay.ts'

/** Logs failures that may come many times a second while something is broken. */
export interface FailureLog {
  /**
   * Logs a failure at `level`. For ten seconds after that, failures of the same kind are logged at level `debug`. Failures are of the same
   * kind if message and error are equal.
   */
  add(level: 'error' | 'warn', fields: { readonly err: unknown; readonly [name: string]: unknown }, message: string): void
}

const EVERY_MS = 10_000
const KINDS_MAX = 100

export function createFailureLog({ log, clock }: Pick<Relay, 'log'> & Part<'clock', 'monotonic'>): FailureLog {
  const loggedAtMs = new Map<string, number>()
  return {
    add(level, fields, message) {
      const kind = `${message}: ${String(fields.err)}`
      const nowMs = clock.monotonic()
      const isKnown = nowMs - (loggedAtMs.get(kind) ?? Number.NEGATIVE_INFINITY) < EVERY_MS
      if (!isKnown) {
        if (loggedAtMs.size >= KINDS_MAX) loggedAtMs.clear()
        loggedAtMs.set(kind, nowMs)
      }
      log[isKnown ? 'debug' : level](fields, message)
    },
  }
}
