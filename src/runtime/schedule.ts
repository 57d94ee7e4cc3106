import cron from 'node-cron'

const SECOND_MS = 1000
/** How far back is looked when a second was late, or the clock was put forward. */
const LATE_SECONDS_MAX = 60

/**
 * Wakes something by a cron expression (UTC); whether there is anything to do is not its business. It looks every second whether the second
 * is one of the expression's: planned ahead, a clock that is put back would hold the next time up by as much, and one that is put forward by
 * years would be gone through minute by minute.
 */
export function startSchedule(expression: string, wake: () => void, now: () => number): { stop(): Promise<void> } {
  // Never started: only its expression is used.
  const task = cron.createTask(expression, () => undefined, { timezone: 'UTC' })
  let seenSecond = secondOf(now())
  let timer: NodeJS.Timeout | undefined

  function look(): void {
    const second = secondOf(now())
    // A timer may ring a little early: then there is nothing new to look at.
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
