/**
 * Makes a write one at a time. Whoever asks while one is under way shares the next one, which holds what is true by then; each hears how the
 * one that holds his news ended.
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
