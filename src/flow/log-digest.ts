import type { Clock, Log } from './ports.ts'

/**
 * Limits log lines that may come in any number: the first of a kind is logged at once, further ones are counted and logged once a minute.
 */
export interface LogDigest {
  /**
   * Logs or counts events. `message` is the logged sentence and also names their kind; `count` becomes a field of the line. `senders`: who
   * caused them; a line names the last few.
   */
  add(message: string, count: number, senders?: readonly string[]): void
  /** Logs every count that is a minute old. Call it every few seconds. */
  flush(): void
  /** Logs all counts. Call it when the relay stops. */
  end(): void
}

const EVERY_MS = 60_000
const SENDERS_MAX = 5

interface Counted {
  count: number
  senders: readonly string[]
  readonly sinceMs: number
}

export function createLogDigest({ log, clock }: { readonly log: Pick<Log, 'warn'>; readonly clock: Clock }): LogDigest {
  const counted = new Map<string, Counted>()

  function flushOlderThan(ageMs: number): void {
    const nowMs = clock.monotonic()
    for (const [message, { count, senders, sinceMs }] of counted) {
      if (nowMs - sinceMs < ageMs) continue
      if (count === 0) {
        counted.delete(message)
        continue
      }
      log.warn({ count, seconds: Math.round((nowMs - sinceMs) / 1000), ...named(senders) }, message)
      counted.set(message, { count: 0, senders: [], sinceMs: nowMs })
    }
  }

  return {
    add(message, count, senders = []) {
      const known = counted.get(message)
      if (known !== undefined) {
        known.count += count
        known.senders = [...new Set([...senders, ...known.senders])].slice(0, SENDERS_MAX)
        return
      }
      log.warn({ count, ...named(senders) }, message)
      counted.set(message, { count: 0, senders: [], sinceMs: clock.monotonic() })
    },
    flush: () => flushOlderThan(EVERY_MS),
    end: () => flushOlderThan(0),
  }
}

function named(senders: readonly string[]): object {
  return senders.length === 0 ? {} : { senders: senders.slice(0, SENDERS_MAX) }
}
