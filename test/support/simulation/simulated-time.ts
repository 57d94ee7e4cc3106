import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { CLOCK_FILE } from './simulated-clock.ts'

/** A wall clock that a test moves ahead. The processes of a simulation share it. Between two jumps it runs like the real clock. */
export interface SimulatedTime {
  now(): number
  /** Jumps to a time. Does nothing if the time has passed. */
  jumpTo(atMs: number): void
  /** The environment of the relay processes that use this clock. It works only for relays that run from their sources. */
  readonly env: NodeJS.ProcessEnv
}

const PRELOADED = new URL('./simulated-process.ts', import.meta.url).href

export function simulateTime(startMs: number): SimulatedTime {
  const folder = mkdtempSync(join(tmpdir(), 'parcel-relay-clock-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'ahead-ms')
  let aheadMs = startMs - Date.now()
  // Write a number of the same length each time, so that no reader sees only half of it.
  const write = () => writeFileSync(file, String(aheadMs).padStart(20), { flag: 'r+' })
  writeFileSync(file, '')
  write()
  const now = () => Date.now() + aheadMs
  return {
    now,
    jumpTo(atMs) {
      if (atMs <= now()) return
      aheadMs = atMs - Date.now()
      write()
    },
    env: { NODE_OPTIONS: `--import=${PRELOADED}`, [CLOCK_FILE]: file },
  }
}
