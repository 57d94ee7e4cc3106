/** The result of a pass. `busy`: begin another one at once. `idle`: wait until the worker is woken. */
export type PassResult = 'busy' | 'idle'

export interface Worker {
  /** Starts a pass, or another after the current one. */
  wake(): void
  /** Resolves when the worker has nothing to do: at once, or after the current passes. */
  rests(): Promise<void>
  /** Resolves when the current pass has ended; no other starts. */
  stop(): Promise<void>
}

/** Runs passes, once it is woken, until one is idle. A failed pass counts as idle. */
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
      // Start in the next microtask, so that a pass that wakes its own worker finds `running` set.
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
