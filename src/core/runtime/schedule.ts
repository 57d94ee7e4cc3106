import cron from 'node-cron'

const SECOND_MS = 1000
/** If the timer is late or the clock was set forward, at most this many of the skipped seconds are checked. */
const LATE_SECONDS_MAX = 60

/**
 * Calls `wake` at each time that matches a cron expression, in a time zone. It checks every second. It does not compute the next time ahead:
 * that time is wrong after the clock is set back, and slow to find after the clock is set forward by years.
 */
export function startSchedule(expression: string, wake: () => void, now: () => number, zone = 'UTC'): { stop(): Promise<void> } {
  // The task is never started. It is only asked whether a second matches the expression.
  const task = cron.createTask(expression, () => undefined, { timezone: zone })
  let seenSecond = secondOf(now())
  let timer: NodeJS.Timeout | undefined

  function look(): void {
    const second = secondOf(now())
    // A timer may fire slightly early. Then no second is new, and the loop does nothing.
    const from = second < seenSecond ? second - 1 : Math.max(seenSecond, second - LATE_SECONDS_MAX)
    seenSecond = second
    for (let one = from + 1; one <= second; one++) {
      if (!task.match(new Date(one * SECOND_MS))) continue
      wake()
      break
    }
    arm()
  }
  function arm(): void {
    timer = setTimeout(look, SECOND_MS - (now() % SECOND_MS))
  }

  arm()
  return {
    async stop() {
      clearTimeout(timer)
      await task.destroy()
    },
  }
}

function secondOf(wallMs: number): number {
  return Math.floor(wallMs / SECOND_MS)
}

/** Repeats `work` until stopped. Waits `everyMs` between the end of one run and the start of the next. `work` must not reject. */
export function startRepeating(work: () => Promise<void>, everyMs: number): { readonly stop: () => void } {
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  const again = () => {
    timer = setTimeout(() => void work().then(() => (stopped ? undefined : again())), everyMs)
    timer.unref()
  }
  again()
  return {
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
