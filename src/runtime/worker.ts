/** What a pass did: `busy` asks for another at once, `idle` waits until it is woken. */
export type PassResult = 'busy' | 'idle'

export interface Worker {
  /** Starts a pass, or another after the one that is running. */
  wake(): void
  /** Resolves when the pass that is running has ended; no other starts. */
  stop(): Promise<void>
}

/** A loop that knows nothing of what it runs: woken, it passes until a pass is idle. A pass that fails rests like an idle one. */
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
      // Not run at once: a pass that wakes its own worker must find it running.
      if (!stopped) running ??= Promise.resolve().then(run)
    },
    async stop() {
      stopped = true
      await running
    },
  }
}
