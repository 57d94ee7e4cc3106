import type { Clock, Log } from './ports.ts'

/**
 * Limits log lines that may come in any number: the first of a kind is logged at once, further ones are counted and logged once a minute.
 */
export interface LogDigest {
  /** Logs or counts events. `message` is the logged sentence and also names their kind; `count` becomes a field of the line. */
  add(message: string, count: number): void
  /** Logs every count that is a minute old. To be called every few seconds. */
  flush(): void
  /** Logs all counts. To be called when the relay stops. */
  end(): void
}

const EVERY_MS = 60_000

interface Counted {
  count: number
  readonly sinceMs: number
}

export function createLogDigest({ log, clock }: { readonly log: Pick<Log, 'warn'>; readonly clock: Clock }): LogDigest {
  const counted = new Map<string, Counted>()

  function flushOlderThan(ageMs: number): void {
    const nowMs = clock.monotonic()
    for (const [message, { count, sinceMs }] of counted) {
      if (nowMs - sinceMs < ageMs) continue
      if (count === 0) {
        counted.delete(message)
        continue
      }
      log.warn({ count, seconds: Math.round((nowMs - sinceMs) / 1000) }, message)
      counted.set(message, { count: 0, sinceMs: nowMs })
    }
  }

  return {
    add(message, count) {
      const known = counted.get(message)
      if (known !== undefined) {
        known.count += count
        return
      }
      log.warn({ count }, message)
      counted.set(message, { count: 0, sinceMs: clock.monotonic() })
    },
    flush: () => flushOlderThan(EVERY_MS),
    end: () => flushOlderThan(0),
  }
}
