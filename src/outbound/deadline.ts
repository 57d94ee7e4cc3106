/** Starts a timer; the answer cancels it. Injected, so that tests own time. */
export type StartTimer = (delayMs: number, run: () => void) => () => void

export const startRealTimer: StartTimer = (delayMs, run) => {
  const timer = setTimeout(run, delayMs)
  return () => clearTimeout(timer)
}

/** One bound over everything a question does: connecting, headers, body, and its retries. */
export interface Deadline {
  readonly signal: AbortSignal
  /** From now on time runs; later calls change nothing. */
  start(): void
  /** Ends the question now, as if its time were up. */
  abort(): void
  /** To be called when the question is over: leaves no timer and no listener behind. */
  end(): void
}

export function createDeadline(timeoutMs: number, startTimer: StartTimer, outer?: AbortSignal): Deadline {
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  let cancel: (() => void) | null = null
  if (outer?.aborted) abort()
  outer?.addEventListener('abort', abort)
  return {
    signal: controller.signal,
    start() {
      cancel ??= startTimer(timeoutMs, abort)
    },
    abort,
    end() {
      cancel?.()
      outer?.removeEventListener('abort', abort)
    },
  }
}

/** Waits for work that others may share: when the signal fires the caller gets `whenAborted`, and the work goes on for the others. */
export function orWhenAborted<Value>(work: Promise<Value>, signal: AbortSignal, whenAborted: Value): Promise<Value> {
  if (signal.aborted) return Promise.resolve(whenAborted)
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(whenAborted)
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
