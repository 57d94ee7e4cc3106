export interface WakeupTimer {
  /** Sets the time to ring, in epoch milliseconds. A time in the past rings at once. If an earlier time is already set, that time stays. */
  set(atMs: number): void
  cancel(): void
}

/** The longest wait before the clock is read again. So if somebody sets the clock forward, the timer rings at most a minute late. */
const TIMER_MS_MAX = 60_000

/** Creates a timer that calls `ring` at the earliest of the times that were set. */
export function createWakeupTimer(ring: () => void, now: () => number): WakeupTimer {
  let setForMs: number | null = null
  let timer: NodeJS.Timeout | null = null

  function start(): void {
    if (timer !== null) clearTimeout(timer)
    timer = null
    if (setForMs === null) return
    timer = setTimeout(look, Math.min(TIMER_MS_MAX, Math.max(0, setForMs - now())))
  }

  function look(): void {
    if (setForMs !== null && setForMs > now()) {
      start()
      return
    }
    setForMs = null
    timer = null
    ring()
  }

  return {
    set(atMs) {
      if (setForMs !== null && setForMs <= atMs) return
      setForMs = atMs
      start()
    },
    cancel() {
      setForMs = null
      start()
    },
  }
}
