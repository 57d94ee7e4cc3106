import type { Lifecycle } from './lifecycles.ts'
import type { Pushes } from './losses.ts'
import { measureStaleness, type Staleness, unknownTimes } from './staleness.ts'

export interface FixedRun {
  readonly intervalMs: number
  readonly calls: number
  readonly staleness: Staleness
}

/** Polls every parcel at one interval, from its first scan until an answer shows the delivery. It gets the same pushes as the relay. */
function runFixedPoller(lifecycles: readonly Lifecycle[], pushes: Pushes, intervalMs: number): FixedRun {
  const known = unknownTimes(lifecycles)
  let calls = 0
  for (const [parcel, { scans }] of lifecycles.entries()) {
    const bornMs = scans[0]?.atMs ?? 0
    const deliveredMs = scans.at(-1)?.atMs ?? 0
    calls += 1 + Math.ceil((deliveredMs - bornMs) / intervalMs)
    for (const [at, { atMs }] of scans.entries()) {
      const polledMs = bornMs + Math.ceil((atMs - bornMs) / intervalMs) * intervalMs
      known[parcel]?.fill(Math.min(polledMs, pushes[parcel]?.[at] ?? Number.POSITIVE_INFINITY), at, at + 1)
    }
  }
  return { intervalMs, calls, staleness: measureStaleness(lifecycles, pushes, known) }
}

/** Finds the fixed poller that makes as many calls, within 0.5 %; if even the longest interval makes more, that one. */
export function matchFixedPoller(lifecycles: readonly Lifecycle[], pushes: Pushes, calls: number): FixedRun {
  let [short, long] = [60_000, 60 * 24 * 3_600_000]
  const rarest = runFixedPoller(lifecycles, pushes, long)
  if (rarest.calls >= calls) return rarest
  for (let tries = 0; tries < 60; tries++) {
    const run = runFixedPoller(lifecycles, pushes, Math.sqrt(short * long))
    if (Math.abs(run.calls - calls) <= calls / 200) return run
    if (run.calls > calls) short = run.intervalMs
    else long = run.intervalMs
  }
  throw new Error(`no fixed interval makes ${calls} calls`)
}
