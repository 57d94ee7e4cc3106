import { openSync } from 'node:fs'
import { Worker } from 'node:worker_threads'

/** The log of changes is carried over when so many of its pages wait for it. Of more at a time fewer were written twice, but commits would wait
 * for the disk meanwhile. */
const CARRIED_PAGES = 4000
/** A log of so many pages is begun anew: for that everybody waits until all of it is carried over. */
const LOG_PAGES = 20_000
/** Looked for after so many commits: asking costs as much as recording a push. */
const COMMITS_A_LOOK = 8

export interface LogState {
  readonly pages: number
  /** Those that are in the database. */
  readonly carried: number
}

/** What the thread is told: to carry over what is there, or to leave as little as it can. */
export type CheckpointOrder = 'some' | 'all'

/** What the thread is started with. */
export interface CheckpointData {
  /** The database file. */
  readonly path: string
  /** A handle of it to sync by; null: there could be none. */
  readonly file: number | null
}

export interface CheckpointPorts {
  /** The database file. */
  readonly path: string
  readonly log: () => LogState
  /** Carries over what is left, between two transactions; rejects if it cannot. */
  readonly finish: () => Promise<void>
}

export interface Checkpointer {
  /** To be called after each commit. */
  look(): void
  close(): Promise<void>
}

/**
 * Carries the log of changes over to the database on a thread of its own, some thousand pages at a time, while the writer writes on. When
 * the log has grown long, what the writer has added meanwhile is little; it carries that over itself, so that its next transaction begins
 * the log anew. The thread is started when it is needed first.
 */
export function createCheckpointer({ path, log, finish }: CheckpointPorts): Checkpointer {
  let thread: Worker | null = null
  /** Never closed: with any handle of a file that a process closes, it loses the locks that its connections have on that file. */
  let file: number | null = null
  let underWay = false
  let closed = false
  let commits = 0
  let carriedAt = CARRIED_PAGES
  let anewAt = LOG_PAGES

  function start(): Worker {
    file ??= handleOf(path)
    // The file's own ending: sources run as they are in development and compiled from `dist`.
    const worker = new Worker(new URL(`./sqlite-checkpoint-thread${import.meta.url.slice(-3)}`, import.meta.url), {
      workerData: { path, file } satisfies CheckpointData,
      // It holds next to nothing of its own.
      resourceLimits: { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 32 },
    })
    const endedAll = () => ended('all')
    worker.on('message', (order: CheckpointOrder) => {
      if (order === 'some') ended(order)
      else void finish().then(endedAll, endedAll)
    })
    // Without it the log grows until SQLite itself carries it over, at a commit.
    worker.on('error', () => undefined)
    worker.on('exit', () => {
      thread = null
      endedAll()
    })
    worker.unref()
    return worker
  }

  /** What could not be carried (somebody holds an old view of the store, or the thread ended) is not tried for again at once. */
  function ended(order: CheckpointOrder): void {
    if (closed) return
    const { pages, carried } = log()
    carriedAt = CARRIED_PAGES + pages - carried
    if (order === 'all') anewAt = CARRIED_PAGES + pages
    underWay = false
  }

  return {
    look() {
      commits = (commits + 1) % COMMITS_A_LOOK
      if (underWay || closed || commits !== 0) return
      const { pages, carried } = log()
      if (pages < LOG_PAGES) anewAt = LOG_PAGES
      if (pages - carried < CARRIED_PAGES) carriedAt = CARRIED_PAGES
      if (pages < anewAt && pages - carried < carriedAt) return
      underWay = true
      thread ??= start()
      const order: CheckpointOrder = pages < LOG_PAGES ? 'some' : 'all'
      thread.postMessage(order)
    },
    async close() {
      closed = true
      await thread?.terminate()
    },
  }
}

/** Null: the system gives none now. A commit must not fail of that: it is done, and only the last step of carrying takes longer. */
function handleOf(path: string): number | null {
  try {
    return openSync(path, 'r')
  } catch {
    return null
  }
}
