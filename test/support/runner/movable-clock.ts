import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A clock for relay processes that a test can move ahead. */
export interface MovableClock {
  /** The environment of a process with this clock. Its monotonic clock goes with it, as when time passes. Timers of a minute last 200 ms. */
  readonly env: NodeJS.ProcessEnv
  /** The time that the process sees, epoch milliseconds. */
  now(): number
  /** Moves the clock ahead. The process sees it within moments. */
  pass(ms: number): void
}

const MINUTE_MS = 60_000
const INSTEAD_MS = 200

/** Makes a clock that writes into a file of this folder how far it is ahead. */
export function movableClock(folder: string): MovableClock {
  const file = join(folder, 'clock')
  let aheadMs = 0
  const write = () => writeFileSync(file, String(aheadMs))
  write()
  // Each thread of a relay process runs this program when it starts.
  const program = `
    import { readFileSync } from 'node:fs'
    const [TrueDate, timeout, monotonic] = [Date, setTimeout, performance.now.bind(performance)]
    let [ahead, readAt] = [0, -1]
    const passed = () => {
      const at = monotonic()
      if (readAt < 0 || at - readAt > 20) {
        readAt = at
        ahead = Number(readFileSync(${JSON.stringify(file)}, 'utf8')) || ahead
      }
      return ahead
    }
    const now = () => TrueDate.now() + passed()
    performance.now = () => monotonic() + passed()
    globalThis.Date = class extends TrueDate {
      constructor(...given) { given.length === 0 ? super(now()) : super(...given) }
      static now() { return now() }
    }
    globalThis.setTimeout = (work, ms, ...given) => timeout(work, ms === ${MINUTE_MS} ? ${INSTEAD_MS} : ms, ...given)`
  return {
    env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(program)}` },
    now: () => Date.now() + aheadMs,
    pass(ms) {
      aheadMs += ms
      write()
    },
  }
}
