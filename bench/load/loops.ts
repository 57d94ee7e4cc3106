import type { Pacer } from './pacer.ts'
import type { Pool } from './pool.ts'
import type { Requests } from './requests.ts'
import { createTally, type Tally } from './tally.ts'

/** How long to wait for the last answers. */
const PATIENCE_MS = 10_000

/** Closed loop: each connection sends its next request once it has its answer. Ends with the time or the requests. */
export async function closedLoop(pool: Pool, requests: Requests, durationMs: number): Promise<Tally> {
  const startMs = performance.now()
  const endMs = startMs + durationMs
  const tally = createTally(startMs, endMs)
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>()
  pool.start(tally, (on) => {
    const nowMs = performance.now()
    const request = nowMs < endMs ? requests.next(nowMs) : null
    if (request !== null) pool.send(on, request, nowMs)
    else if (pool.inFlight() === 0) finish()
  })
  await settled(pool, finished, endMs)
  return tally
}

/**
 * Open loop: requests fall due at a constant rate, however fast the server is. A request waits if no connection is idle, and its latency counts
 * from when it was due, so that a stalled server cannot hide latency (coordinated omission).
 */
export async function openLoop(pool: Pool, requests: Requests, pacer: Pacer): Promise<Tally> {
  // Every request counts, however late its response.
  const tally = createTally(performance.now(), Number.POSITIVE_INFINITY)
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>()
  const idle: number[] = []
  const overdue: number[] = []
  let over = false
  const send = (on: number, dueMs: number) => {
    const request = requests.next(dueMs)
    if (request === null) throw new RangeError('more requests are due than were prepared')
    pool.send(on, request, dueMs)
  }
  pool.start(tally, (on) => {
    const dueMs = overdue.shift()
    if (dueMs !== undefined) return send(on, dueMs)
    idle.push(on)
    if (over && pool.inFlight() === 0) finish()
  })
  await pacer.run((dueMs) => {
    // Round robin, because the server would soon close an unused connection.
    const on = idle.shift()
    if (on === undefined) overdue.push(dueMs)
    else send(on, dueMs)
  })
  over = true
  if (pool.inFlight() === 0) finish()
  await settled(pool, finished, performance.now())
  return tally
}

async function settled(pool: Pool, finished: Promise<void>, endMs: number): Promise<void> {
  const waitMs = endMs - performance.now() + PATIENCE_MS
  const { promise: impatient, resolve } = Promise.withResolvers<void>()
  // An infinite timeout would fire at once.
  const timer = Number.isFinite(waitMs) ? setTimeout(resolve, waitMs) : undefined
  await Promise.race([finished, pool.broken, impatient])
  clearTimeout(timer)
}
