export interface WakeupTimer {
  /** Fires at a wall-clock time (epoch milliseconds), at once if it has passed. An earlier time that was set stands. */
  set(atMs: number): void
  cancel(): void
}

/** The longest single timer; a later time is reached in steps. */
const TIMER_MS_MAX = 60_000

/** One timer for the earliest of many times. It checks the clock at least once a minute, so that setting the clock does not delay it. */
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
