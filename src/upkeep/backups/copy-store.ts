import { close, fdatasync, open, rmSync } from 'node:fs'
import type Database from 'better-sqlite3'
import type { StoreCopier } from '../../core/store/engine.ts'
import { makeFile } from '../../core/store/sqlite/whole-file.ts'

/** How long one step may take. Everything that needs the writer waits for the step. */
const STEP_MS = 0.5
/** A rest lasts this many times as long as the step before it. Shorter rests doubled the latency of pushes (decision 0029). */
const REST = 4
const PAGES = { min: 16, max: 512 }
/** How often the copy is synced to disk. The writer waits for the last sync, and the earlier syncs shorten the last one. */
const SYNC_EVERY_MS = 100
/** During a rest the driver keeps asking how many pages to copy. The answer 0 is delayed by this long. A longer delay would hold up pushes. */
const NAP_MS = 0.2
const NEVER = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))

/**
 * The copy uses the writer's own connection, because SQLite then adds to the copy whatever the writer changes. If another connection wrote
 * during the copy, SQLite would start over. The copy never keeps the WAL from being checkpointed (decision 0029).
 */
export function createStoreCopier(db: Database.Database, monotonic: () => number = () => performance.now()): StoreCopier {
  let running: { done: number; total: number; isStopped: boolean } | null = null
  return {
    async copy(file) {
      if (running !== null) throw new Error('the store is being copied already')
      const copy = { done: 0, total: 0, isStopped: false }
      running = copy
      const pace = createPace(monotonic)
      const synced = syncOften(file)
      try {
        removeCopy(file)
        // SQLite would make the file with the umask, and others could read the store until the copy is complete.
        makeFile(file)
        await db.backup(file, {
          progress({ totalPages, remainingPages }) {
            if (copy.isStopped) throw new CopyStopped()
            copy.total = totalPages
            copy.done = totalPages - remainingPages
            return pace()
          },
        })
      } catch (error) {
        removeCopy(file)
        throw error
      } finally {
        synced.stop()
        running = null
      }
    },
    progress: () => (running === null ? null : { done: running.done, total: running.total }),
    stop() {
      if (running !== null) running.isStopped = true
    },
  }
}

class CopyStopped extends Error {
  override readonly name = 'CopyStopped'

  constructor() {
    super('the copy was stopped')
  }
}

export function removeCopy(file: string): void {
  for (const path of copyFiles(file)) rmSync(path, { force: true })
}

/** Lists the paths of a copy and of the files that SQLite may have left beside it. */
export function copyFiles(file: string): readonly string[] {
  return ['', '-journal', '-wal', '-shm'].map((suffix) => `${file}${suffix}`)
}

/** The returned function tells how many pages to copy next, so that a step takes about `STEP_MS`; 0: rest. */
function createPace(monotonic: () => number): () => number {
  let pages = PAGES.min
  let begunMs: number | null = null
  let restUntilMs = 0
  return () => {
    const nowMs = monotonic()
    if (begunMs !== null) {
      const tookMs = nowMs - begunMs
      begunMs = null
      restUntilMs = nowMs + REST * Math.min(tookMs, 4 * STEP_MS)
      pages = Math.max(PAGES.min, Math.min(PAGES.max, 2 * pages, Math.round((pages * STEP_MS) / Math.max(tookMs, 0.01))))
    }
    if (nowMs < restUntilMs) {
      Atomics.wait(NEVER, 0, 0, NAP_MS)
      return 0
    }
    // The driver copies these pages in its own callback of `setImmediate`. The callback here runs right before it, and notes when the step begins.
    setImmediate(() => {
      begunMs = monotonic()
    })
    return pages
  }
}

/** Syncs a file repeatedly, without blocking this thread. A failure is ignored, because the sync at the end of the copy would fail too. */
function syncOften(file: string): { stop(): void } {
  let handle: number | null = null
  let isBusy = false
  let isOver = false
  const look = () => {
    if (isBusy) return
    isBusy = true
    if (handle === null) open(file, 'r', (_, opened) => settled(opened ?? null))
    else fdatasync(handle, () => settled(handle))
  }
  const settled = (opened: number | null) => {
    handle = opened
    isBusy = false
    if (isOver) end()
  }
  const end = () => {
    if (handle !== null && !isBusy) close(handle)
  }
  const timer = setInterval(look, SYNC_EVERY_MS)
  timer.unref()
  return {
    stop() {
      isOver = true
      clearInterval(timer)
      end()
    },
  }
}
