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

/** The result of a pass. `busy`: begin another pass at once. `idle`: wait until the worker is woken. */
export type PassResult = 'busy' | 'idle'

/** Creates a worker that runs passes when it is woken, until a pass returns `idle` or fails. */
export function startWorker(pass: () => Promise<PassResult>, onFailure: (error: unknown) => void) {
  let woken = false
  let stopped = false
  let running: Promise<void> | null = null

  async function run(): Promise<void> {
    while (woken && !stopped) {
      woken = false
      try {
        if ((await pass()) === 'busy') woken = true
      } catch (error) {
        onFailure(error)
      }
    }
    running = null
  }

  return {
    /** Starts a pass. If one is running, another pass follows it. */
    wake() {
      woken = true
      // The pass may wake its own worker, so start it in the next microtask, when `running` is set.
      if (!stopped) running ??= Promise.resolve().then(run)
    },
    /** Resolves when no pass is running and none follows. */
    async rests() {
      await running
    },
    /** Starts no further pass. Resolves when the running pass has ended. */
    async stop() {
      stopped = true
      await running
    },
  }
}

/**
 * Runs pieces of work one after the other. After each piece it rests for as long as the piece took, but at most a second. So background work
 * leaves about half of the disk or the processor to other work.
 */
export function createDutyCycle(
  monotonic: () => number,
  rest: (ms: number) => Promise<unknown>,
): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return <T>(work: () => Promise<T>) => {
    const turn = last.then(async () => {
      const beganMs = monotonic()
      try {
        return { value: await work(), tookMs: monotonic() - beganMs }
      } catch (error) {
        return { error, tookMs: monotonic() - beganMs }
      }
    })
    last = turn.then(({ tookMs }) => rest(Math.min(tookMs, REST_MS_MAX)))
    return turn.then((ended) => {
      if ('error' in ended) throw ended.error
      return ended.value
    })
  }
}

const REST_MS_MAX = 1000

/** The longest wait before the clock is read again. So if somebody sets the clock forward, the timer rings at most a minute late. */
const TIMER_MS_MAX = 60_000

/** Creates a timer that calls `ring` at the earliest of the times that were set. */
export function createWakeupTimer(ring: () => void, now: () => number) {
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
    /** Sets the time to ring, in epoch milliseconds. A time in the past rings at once. If an earlier time is already set, that time stays. */
    set(atMs: number) {
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
