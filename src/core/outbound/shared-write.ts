/**
 * Runs one write at a time. All callers during a write share the next write, because the running write may not contain their changes. So
 * each caller gets the outcome of a write that contains its change.
 */
export function createSharedWrite(write: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null
  let next: Promise<void> | null = null

  function start(): Promise<void> {
    next = null
    const begun = write().finally(() => {
      if (running === begun) running = null
    })
    running = begun
    return begun
  }

  return () => {
    if (running === null) return start()
    next ??= running.then(start, start)
    return next
  }
}
