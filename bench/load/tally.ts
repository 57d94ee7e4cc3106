import { createSeries, type Percentiles } from './percentiles.ts'

/** Outcomes of the requests of one run. */
export interface Tally {
  answered(status: number, bodyBytes: number, sinceMs: number): void
  failed(outcome: 'broken' | 'unanswered', count: number): void
  report(): {
    readonly outcomes: Readonly<Record<string, number>>
    readonly ratePerSecond: number
    readonly latencyMs: Percentiles
    readonly bodyBytes: number
  }
}

/** Times are of `performance.now()`. A response after `endMs` counts only as an outcome, not in rate or latency. */
export function createTally(startMs: number, endMs: number): Tally {
  const outcomes: Record<string, number> = {}
  const latency = createSeries()
  let inTime = 0
  let lastMs = startMs
  let bytes = 0
  const count = (outcome: string, by: number) => {
    outcomes[outcome] = (outcomes[outcome] ?? 0) + by
  }
  return {
    answered(status, bodyBytes, sinceMs) {
      const nowMs = performance.now()
      count(String(status), 1)
      bytes += bodyBytes
      if (nowMs > endMs) return
      inTime += 1
      lastMs = nowMs
      latency.add(nowMs - sinceMs)
    },
    failed: count,
    report: () => ({
      outcomes,
      ratePerSecond: (inTime / (lastMs - startMs)) * 1000,
      latencyMs: latency.percentiles(),
      bodyBytes: bytes,
    }),
  }
}
