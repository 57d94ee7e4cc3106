import type { PushAttempt, PushRecord } from './pusher.ts'
import type { Tally } from './tally.ts'

export interface PushStats {
  /** All events of parcels so far. */
  readonly events: number
  readonly silenced: number
  readonly lost: number
  readonly duplicated: number
  readonly reordered: number
  /** Events whose push is still to be sent. */
  readonly waiting: number
  /** Requests to receivers, including retries. */
  readonly sent: number
  /** Requests that a receiver answered with 2xx. */
  readonly accepted: number
  readonly failed: number
  /** Pushes that no receiver answered with 2xx, and that are no longer retried. */
  readonly givenUp: number
  /** The number of requests by the status of their answer or, without an answer, by their error. */
  readonly answers: Readonly<Record<string, number>>
}

/** The number of calls of the carrier's API, by path and then by status. */
type CallStats = Readonly<Record<string, Readonly<Record<string, number>>>>

export interface SandboxStats {
  readonly calls: CallStats
  readonly tokensIssued: number
  readonly pushes: PushStats
  /** How often each hard case occurs in the whole plan, including events that have not happened yet. */
  readonly tally: Tally
  readonly time: { readonly simulated: string; readonly finished: boolean; readonly speed: number }
}

export interface CallCounter {
  count(path: string, status: number): void
  stats(): CallStats
}

export function createCallCounter(): CallCounter {
  const counts = new Map<string, Map<string, number>>()
  return {
    count: (path, status) => {
      const statuses = counts.get(path) ?? new Map<string, number>()
      counts.set(path, statuses.set(String(status), (statuses.get(String(status)) ?? 0) + 1))
    },
    stats: () => Object.fromEntries([...counts].map(([path, statuses]) => [path, Object.fromEntries(statuses)])),
  }
}

export function pushStats(records: readonly PushRecord[]): PushStats {
  const attempts = records.flatMap((record) => record.attempts)
  const count = (is: (record: PushRecord) => boolean): number => records.filter(is).length
  const isAccepted = ({ status }: PushAttempt) => status !== null && status >= 200 && status < 300
  const accepted = attempts.filter(isAccepted).length
  const answers = new Map<string, number>()
  for (const { status, error } of attempts) {
    const name = String(status ?? error)
    answers.set(name, (answers.get(name) ?? 0) + 1)
  }
  return {
    events: records.length,
    silenced: count(({ fate }) => fate === 'silenced'),
    lost: count(({ fate }) => fate === 'lost'),
    duplicated: count(({ copies }) => copies > 1),
    reordered: count(({ reordered }) => reordered),
    waiting: count(({ fate }) => fate === 'waiting'),
    sent: attempts.length,
    accepted,
    failed: attempts.length - accepted,
    givenUp: count((record) => record.fate === 'sent' && !record.attempts.some(isAccepted)),
    answers: Object.fromEntries(answers),
  }
}
