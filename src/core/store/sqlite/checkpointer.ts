import { Worker } from 'node:worker_threads'

/** A checkpoint starts when this many pages of the WAL wait for it. With a higher number, fewer pages are written twice, but commits wait longer. */
const CARRIED_PAGES = 4000
/** At this many pages, the whole WAL is checkpointed, so that the next commit writes to its start again. Commits wait for the last pages. */
const LOG_PAGES = 20_000
/** The WAL is checked only after this many commits, because a check costs as much as recording a push. */
const COMMITS_A_LOOK = 8

export interface LogState {
  readonly pages: number
  /** Pages that are already checkpointed into the database. */
  readonly carried: number
}

/** `some`: checkpoint once; `all`: repeat until few pages are left. */
export type CheckpointOrder = 'some' | 'all'

/** The thread's `workerData`. */
export interface CheckpointData {
  readonly path: string
  /** A file descriptor of the database, for syncs; null: it could not be opened. Then the final sync takes longer. */
  readonly file: number | null
}

export interface CheckpointPorts {
  readonly path: string
  /** Returns `CheckpointData.file`. */
  readonly open: () => number | null
  readonly log: () => LogState
  /** Checkpoints the remaining pages between two transactions; rejects on failure. */
  readonly finish: () => Promise<void>
}

/**
 * Checkpoints the WAL on a separate thread, some thousand pages at a time, while the writer keeps writing. If the WAL has grown long, the
 * thread checkpoints almost all of it, and then the writer checkpoints the rest. The thread is started when it is first needed.
 */
export function createCheckpointer({ path, open, log, finish }: CheckpointPorts) {
  let thread: Worker | null = null
  let underWay = false
  let closed = false
  let commits = 0
  let carriedAt = CARRIED_PAGES
  let anewAt = LOG_PAGES

  function start(): Worker {
    // Uses this file's own extension: `.ts` in development, `.js` when compiled.
    const worker = new Worker(new URL(`./checkpoint-thread${import.meta.url.slice(-3)}`, import.meta.url), {
      workerData: { path, file: open() } satisfies CheckpointData,
      // The thread needs almost no memory.
      resourceLimits: { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 32 },
    })
    const endedAll = () => ended('all')
    worker.on('message', (order: CheckpointOrder) => {
      if (order === 'some') ended(order)
      else void finish().then(endedAll, endedAll)
    })
    // Without the thread, SQLite itself makes a checkpoint at a commit, once the WAL reaches `wal_autocheckpoint`.
    worker.on('error', () => undefined)
    worker.on('exit', () => {
      thread = null
      endedAll()
    })
    worker.unref()
    return worker
  }

  /**
   * Ends a checkpoint. If a reader or a dead thread has kept pages from being checkpointed, raises the thresholds by the number of those
   * pages, so that the next checkpoint does not begin at once.
   */
  function ended(order: CheckpointOrder): void {
    if (closed) return
    const { pages, carried } = log()
    carriedAt = CARRIED_PAGES + pages - carried
    if (order === 'all') anewAt = CARRIED_PAGES + pages
    underWay = false
  }

  return {
    /** Call it after each commit. */
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
