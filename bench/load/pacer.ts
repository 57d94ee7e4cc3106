import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { createSeries, type Percentiles } from './percentiles.ts'

export interface Pacer {
  /** Calls `onDue` once for each due time, at that time or slightly later. */
  run(onDue: (dueMs: number) => void): Promise<void>
  /** How late the calls of `onDue` were. */
  lateMs(): Percentiles
  stop(): Promise<void>
}

/** A sleeping thread makes the ticks: timers have only millisecond resolution, and a busy loop would take one of two cores. */
const TICK = `
  const { parentPort, workerData } = require('node:worker_threads')
  const nobody = new Int32Array(new SharedArrayBuffer(4))
  for (;;) {
    Atomics.wait(nobody, 0, 0, workerData)
    parentPort.postMessage(0)
  }
`
const TICK_MS = 0.25

export async function startPacer(ratePerSecond: number, durationMs: number): Promise<Pacer> {
  const ticks = new Worker(TICK, { eval: true, workerData: TICK_MS })
  await once(ticks, 'message')
  const lateness = createSeries()
  const all = Math.floor((ratePerSecond * durationMs) / 1000)
  return {
    run(onDue) {
      const startMs = performance.now()
      let due = 0
      const { promise, resolve } = Promise.withResolvers<void>()
      ticks.on('message', () => {
        const nowMs = performance.now()
        for (let dueMs = startMs + (due / ratePerSecond) * 1000; due < all && dueMs <= nowMs; ) {
          lateness.add(nowMs - dueMs)
          onDue(dueMs)
          due += 1
          dueMs = startMs + (due / ratePerSecond) * 1000
        }
        if (due === all) resolve()
      })
      return promise
    },
    lateMs: () => lateness.percentiles(),
    async stop() {
      await ticks.terminate()
    },
  }
}
