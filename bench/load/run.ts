import { closedLoop, openLoop } from './loops.ts'
import { startPacer } from './pacer.ts'
import type { Percentiles } from './percentiles.ts'
import { openPool } from './pool.ts'
import type { Requests } from './requests.ts'

export type CommitThrottle =
  /** Closed loop. `durationMs` null: until all requests are sent. */
  | { readonly kind: 'closed'; readonly durationMs: number | null }
  /** Open loop at a constant rate. */
  | { readonly kind: 'open'; readonly ratePerSecond: number; readonly durationMs: number }

export interface RunOptions {
  readonly port: number
  readonly connections: number
  readonly pace: CommitThrottle
}

export interface RunResult {
  /** Counts by status. `broken`: connections that the server closed; `unanswered`: requests without a response. */
  readonly outcomes: Readonly<Record<string, number>>
  /** Rate of responses within the duration. */
  readonly ratePerSecond: number
  /** Closed loop: from sending. Open loop: from when the request was due. */
  readonly latencyMs: Percentiles
  /** Open loop: how late this process noticed that a request was due. Included in the latency. */
  readonly lateMs: Percentiles | null
  readonly bodyBytes: number
  /** Processor time of this process, all threads. */
  readonly cpuMs: number
}

/** Sends requests and reports their outcomes. */
export async function runLoad(requests: Requests, { port, connections, pace }: RunOptions): Promise<RunResult> {
  const pacer = pace.kind === 'open' ? await startPacer(pace.ratePerSecond, pace.durationMs) : null
  const pool = await openPool(port, connections)
  const cpuBefore = process.cpuUsage()
  const tally =
    pacer === null ? await closedLoop(pool, requests, pace.durationMs ?? Number.POSITIVE_INFINITY) : await openLoop(pool, requests, pacer)
  const { user, system } = process.cpuUsage(cpuBefore)
  if (pool.inFlight() > 0) tally.failed('unanswered', pool.inFlight())
  pool.close()
  await pacer?.stop()
  return { ...tally.report(), lateMs: pacer?.lateMs() ?? null, cpuMs: (user + system) / 1000 }
}
