const timerMsMax = 2_000_000_000

export interface TimelineOptions<Step> {
  /** Oldest first. */
  readonly steps: readonly Step[]
  readonly startMs: number
  readonly endMs: number
  /** Simulated seconds per real second; 0: the clock moves only when advanced. */
  readonly speed: number
  /** Reads a real, monotonic clock, in milliseconds. */
  readonly monotonicMs: () => number
  readonly onStep: (step: Step) => void
}

/** The carrier's simulated clock. It runs from `startMs` to `endMs`, and calls `onStep` with each step at the step's time. */
export interface Timeline {
  now(): number
  finished(): boolean
  /** Advances the clock by simulated milliseconds, and takes the steps that fall into this time. */
  advance(byMs: number): void
  /** Advances the clock to its end. */
  finish(): void
  start(): void
  stop(): void
}

export function createTimeline<Step extends { readonly atMs: number }>(options: TimelineOptions<Step>): Timeline {
  const { steps, startMs, endMs, speed, monotonicMs, onStep } = options
  let base = { simulatedMs: startMs, realMs: monotonicMs() }
  let taken = 0
  let running = false
  let timer: NodeJS.Timeout | undefined

  const now = (): number => Math.min(endMs, base.simulatedMs + (running ? (monotonicMs() - base.realMs) * speed : 0))

  const takeDue = (): void => {
    for (let step = steps[taken]; step !== undefined && step.atMs <= now(); step = steps[taken]) {
      taken += 1
      onStep(step)
    }
  }

  const run = (): void => {
    clearTimeout(timer)
    takeDue()
    const next = steps[taken]
    if (!running || speed === 0 || next === undefined) return
    timer = setTimeout(run, Math.min(timerMsMax, Math.max(1, Math.ceil((next.atMs - now()) / speed))))
  }

  const advance = (byMs: number): void => {
    base = { simulatedMs: now() + byMs, realMs: monotonicMs() }
    run()
  }

  return {
    now,
    finished: () => taken === steps.length,
    advance,
    finish: () => advance(endMs - now()),
    start: () => {
      base = { simulatedMs: now(), realMs: monotonicMs() }
      running = true
      run()
    },
    stop: () => {
      base = { simulatedMs: now(), realMs: monotonicMs() }
      running = false
      clearTimeout(timer)
    },
  }
}
