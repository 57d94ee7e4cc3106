/** The result of a pass: `busy` asks for another at once, `idle` waits until the worker is woken. */
export type PassResult = 'busy' | 'idle'

export interface Worker {
  /** Starts a pass, or one more after the current one. */
  wake(): void
  /** Resolves when it has nothing to do: at once, or after the passes under way. */
  rests(): Promise<void>
  /** Resolves when the current pass has ended; no other starts. */
  stop(): Promise<void>
}

/** A generic loop: once woken, it runs passes until one is idle. A failed pass rests like an idle one. */
export function startWorker(pass: () => Promise<PassResult>, onFailure: (error: unknown) => void): Worker {
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
    wake() {
      woken = true
      // Deferred, so that a pass that wakes its own worker finds it running.
      if (!stopped) running ??= Promise.resolve().then(run)
    },
    async rests() {
      await running
    },
    async stop() {
      stopped = true
      await running
    },
  }
}
