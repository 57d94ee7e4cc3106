import { aheadMs, simulatedNow } from './simulated-clock.ts'

// The timers that wake a relay under simulated time. They also fire when the clock jumps past their time.

interface Waiting {
  readonly dueMs: number
  readonly run: () => void
}

/** How often the clock is checked for a jump, in real milliseconds. */
const LOOK_MS = 5

const waiting = new Map<NodeJS.Timeout, Waiting>()
let seenAheadMs = aheadMs()

function look(): void {
  const ahead = aheadMs()
  if (ahead === seenAheadMs) return
  seenAheadMs = ahead
  const nowMs = simulatedNow()
  for (const [timer, { dueMs, run }] of Array.from(waiting)) {
    if (dueMs > nowMs || !waiting.delete(timer)) continue
    globalThis.clearTimeout(timer)
    run()
  }
}

globalThis.setInterval(look, LOOK_MS).unref()

/** Does the same as Node's own `setTimeout`, for a callback without arguments. */
export function setTimeout(run: () => void, ms: number): NodeJS.Timeout {
  const timer = globalThis.setTimeout(() => {
    if (waiting.delete(timer)) run()
  }, ms)
  waiting.set(timer, { dueMs: simulatedNow() + ms, run })
  return timer
}

export function clearTimeout(timer: NodeJS.Timeout | undefined): void {
  if (timer !== undefined) waiting.delete(timer)
  globalThis.clearTimeout(timer)
}
