import { Worker } from 'node:worker_threads'

/** The log of changes is carried over when so many of its pages wait for it: pages that many commits change are then carried over once. */
const CARRIED_PAGES = 20_000
/** Looked for after so many commits: asking costs as much as recording a push. */
const COMMITS_A_LOOK = 8

export interface CarryPorts {
  /** The database file. */
  readonly path: string
  /** Pages of the log that are not in the database yet. */
  readonly pagesWaiting: () => number
  /** Carries over what is left, between two transactions; rejects if it cannot. */
  readonly finish: () => Promise<void>
}

export interface Carrying {
  /** To be called after each commit. */
  look(): void
  close(): Promise<void>
}

/**
 * Carries the log of changes over to the database on a thread of its own: thousands of pages written and synced, for which no push waits.
 * The writer goes on meanwhile. What it has added by then is little; it carries that over itself, so that its next transaction begins the
 * log anew. The thread is started when it is needed first.
 */
export function createCarrying({ path, pagesWaiting, finish }: CarryPorts): Carrying {
  let thread: Worker | null = null
  let underWay = false
  let closed = false
  let commits = 0
  let nextAtPages = CARRIED_PAGES

  function start(): Worker {
    // The file's own ending: sources run as they are in development and compiled from `dist`.
    const worker = new Worker(new URL(`./sqlite-carry-thread${import.meta.url.slice(-3)}`, import.meta.url), {
      workerData: path,
      // It holds next to nothing of its own.
      resourceLimits: { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 32 },
    })
    worker.on(
      'message',
      () =>
        void finish()
          .catch(() => undefined)
          .finally(ended),
    )
    // Without it the log grows until SQLite itself carries it over, at a commit.
    worker.on('error', () => undefined)
    worker.on('exit', () => {
      thread = null
      ended()
    })
    worker.unref()
    return worker
  }

  /** What could not be carried (somebody holds an old view of the store, or the thread ended) is not tried for again at once. */
  function ended(): void {
    if (closed) return
    nextAtPages = CARRIED_PAGES + pagesWaiting()
    underWay = false
  }

  return {
    look() {
      commits = (commits + 1) % COMMITS_A_LOOK
      if (underWay || closed || commits !== 0) return
      const pages = pagesWaiting()
      if (pages < nextAtPages) {
        if (pages < CARRIED_PAGES) nextAtPages = CARRIED_PAGES
        return
      }
      underWay = true
      thread ??= start()
      thread.postMessage('carry')
    },
    async close() {
      closed = true
      await thread?.terminate()
    },
  }
}
