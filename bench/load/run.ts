import { closedLoop, openLoop } from './loops.ts'
import { startPacer } from './pacer.ts'
import type { Percentiles } from './percentiles.ts'
import { openPool } from './pool.ts'
import type { Requests } from './requests.ts'

export type CommitThrottle =
  /** As fast as answers come. `durationMs` null: until all requests are sent. */
  | { readonly kind: 'closed'; readonly durationMs: number | null }
  /** At a constant rate. */
  | { readonly kind: 'open'; readonly ratePerSecond: number; readonly durationMs: number }

export interface RunOptions {
  readonly port: number
  readonly connections: number
  readonly pace: CommitThrottle
}

export interface RunResult {
  /** By status; `broken` counts connections that the server ended, `unanswered` what was never answered. */
  readonly outcomes: Readonly<Record<string, number>>
  /** Of what was answered within the time. */
  readonly ratePerSecond: number
  /** Closed: from the sending. Open: from when it was due. */
  readonly latencyMs: Percentiles
  /** Open: how late this process noticed that a request was due, which is a part of its latency. */
  readonly lateMs: Percentiles | null
  readonly bodyBytes: number
  /** Of this process, all threads. */
  readonly cpuMs: number
}

/** Sends requests for a while and reports what became of them. */
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
