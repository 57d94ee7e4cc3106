/** Starts a timer and returns a function that cancels it. It is passed as a parameter, so that tests can control the time. */
export type StartTimer = (delayMs: number, run: () => void) => () => void

export const startRealTimer: StartTimer = (delayMs, run) => {
  const timer = setTimeout(run, delayMs)
  return () => clearTimeout(timer)
}

/** A time limit for a whole call: connecting, headers, body and retries. */
export type Deadline = ReturnType<typeof createDeadline>

export function createDeadline(timeoutMs: number, startTimer: StartTimer, outer?: AbortSignal) {
  const controller = new AbortController()
  /** Aborts the call now, as if its time were over. */
  const abort = (): void => controller.abort()
  let cancel: (() => void) | null = null
  if (outer?.aborted) abort()
  outer?.addEventListener('abort', abort)
  return {
    signal: controller.signal,
    /** Starts the clock. Only the first call has an effect. */
    start() {
      cancel ??= startTimer(timeoutMs, abort)
    },
    abort,
    /** Removes the timer and the listener. Call it when the call is over. */
    end() {
      cancel?.()
      outer?.removeEventListener('abort', abort)
    },
  }
}

/**
 * Waits for work that several callers share. If the signal is aborted, this caller gets `whenAborted`, and the work continues for the other
 * callers.
 */
export function orWhenAborted<Value>(work: Promise<Value>, signal: AbortSignal, whenAborted: Value): Promise<Value> {
  if (signal.aborted) return Promise.resolve(whenAborted)
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(whenAborted)
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
