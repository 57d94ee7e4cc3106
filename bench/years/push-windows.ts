import type { Generator } from '../load/generator-process.ts'
import { median } from '../load/percentiles.ts'
import type { Observation } from '../suite.ts'
import { hasEnded, type OrderedJob } from './operated-relay.ts'

/** How long pushes took within one second, while something else was running. */
export interface PushWindow {
  readonly during: string
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** So few that pushes alone keep neither core busy, as at a customer with a million parcels a month. */
const PUSHES_PER_SECOND = 500
const CONNECTIONS = 16
const WINDOW_MS = 1000

/** Pushes to one relay at a constant rate, a second at a time. */
export interface Pushing {
  /** Pushes for this many windows. */
  windows(count: number, during: string): Promise<readonly PushWindow[]>
  /** Pushes until a job has ended, or for at most `most` windows. `during` returns the part of the job from the job as the API shows it. */
  beside(job: OrderedJob, during: (job: unknown) => string, most?: number): Promise<readonly PushWindow[]>
}

/** The generator must be prepared with enough requests. */
export function createPushing(load: Generator, port: number): Pushing {
  const pace = { kind: 'open', ratePerSecond: PUSHES_PER_SECOND, durationMs: WINDOW_MS } as const
  const pushOnce = async (during: string): Promise<PushWindow> => {
    const { latencyMs } = await load.run({ port, connections: CONNECTIONS, pace })
    return { during, ...latencyMs }
  }
  return {
    async windows(count, during) {
      const seen: PushWindow[] = []
      while (seen.length < count) seen.push(await pushOnce(during))
      return seen
    },
    async beside(job, during, most = Number.POSITIVE_INFINITY) {
      const seen: PushWindow[] = []
      while (seen.length < most) {
        const at = await job.look()
        if (hasEnded(at)) break
        seen.push(await pushOnce(during(at)))
      }
      return seen
    },
  }
}

export function p50Of(windows: readonly PushWindow[]): number {
  return median(windows.map(({ p50 }) => p50))
}

export function longestOf(windows: readonly PushWindow[]): number {
  return Math.max(...windows.map(({ max }) => max))
}

/** Returns a line of the table for each part, with the medians over its windows and the longest wait. */
export function observeWindows(windows: readonly PushWindow[]): readonly Observation[] {
  return [...Map.groupBy(windows, ({ during }) => during)].map(([during, of]) => ({
    name: `years: pushes ${during}`,
    facts: {
      seconds: of.length,
      'req/s': PUSHES_PER_SECOND,
      'p50 ms': p50Of(of).toFixed(2),
      'p99 ms': median(of.map(({ p99 }) => p99)).toFixed(2),
      'max ms': longestOf(of).toFixed(1),
    },
  }))
}
