/**
 * Runs one write at a time. Callers that arrive during a write share the next one, which covers what is true by then; each caller gets the
 * outcome of the write that covers its change.
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
