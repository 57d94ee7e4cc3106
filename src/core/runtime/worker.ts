/** The result of a pass. `busy`: begin another pass at once. `idle`: wait until the worker is woken. */
export type PassResult = 'busy' | 'idle'

export interface Worker {
  /** Starts a pass. If one is running, another pass follows it. */
  wake(): void
  /** Resolves when no pass is running and none follows. */
  rests(): Promise<void>
  /** Starts no further pass. Resolves when the running pass has ended. */
  stop(): Promise<void>
}

/** Creates a worker that runs passes when it is woken, until a pass returns `idle` or fails. */
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
      // The pass may wake its own worker, so start it in the next microtask, when `running` is set.
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
