export interface WakeupTimer {
  /** Rings at a time of the wall clock (epoch milliseconds), at once if that has passed; an earlier setting stands. */
  set(atMs: number): void
  cancel(): void
}

/** A timer may be no longer than this; the alarm is then set again. */
const TIMER_MS_MAX = 60_000

/** One timer for the earliest of many times. It looks at the clock at least once a minute, so a clock that is set does not hold it up. */
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
