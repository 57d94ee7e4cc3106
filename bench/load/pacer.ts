import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { createSeries, type Percentiles } from './percentiles.ts'

export interface Pacer {
  /** Calls `onDue` with each time that something falls due, at that time or a little later, until all have. */
  run(onDue: (dueMs: number) => void): Promise<void>
  /** How late `onDue` was called. */
  lateMs(): Percentiles
  stop(): Promise<void>
}

/** The platform's timers know whole milliseconds only, and a loop that spins would take one of two cores: a thread that sleeps ticks. */
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
