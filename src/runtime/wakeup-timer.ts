export interface WakeupTimer {
  /** Fires at a wall-clock time (epoch milliseconds), or at once if it has passed. If an earlier time is set already, that one stays. */
  set(atMs: number): void
  cancel(): void
}

/** A longer wait is divided into waits of this length. So if somebody sets the clock, the timer rings at most a minute late. */
const TIMER_MS_MAX = 60_000

/** One timer for the earliest of many times. */
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
