import { fdatasyncSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import type { CheckpointData, CheckpointOrder } from './checkpointer.ts'

/** The thread tries to leave at most this many pages to the writer, because all writes wait while the writer checkpoints pages. */
const LEFT_PAGES = 64
/** The most passes. The writer appends pages during each pass, so on a slow disk the passes might never end. */
const PASSES_MAX: Readonly<Record<CheckpointOrder, number>> = { some: 1, all: 6 }

/** Checkpoints the WAL while the writer keeps writing. Pages that cannot be checkpointed now stay for the next pass. */
if (parentPort === null) throw new Error('this file runs only as a worker thread of the store')
const port = parentPort
// Only `createCheckpointer` starts this thread, so the shape is certain.
const { path, file } = workerData as CheckpointData
const db = new Database(path, { fileMustExist: true })
db.pragma('synchronous = FULL')
const carry = db.prepare('PRAGMA wal_checkpoint(PASSIVE)')
const look = db.prepare<[], { readonly log: number; readonly checkpointed: number }>('PRAGMA wal_checkpoint(NOOP)')

function pagesLeft(): number {
  const state = look.get()
  return state === undefined ? 0 : state.log - state.checkpointed
}

/**
 * Syncs the database after each pass. SQLite itself syncs only at the end of a full checkpoint, which the writer makes. Without the syncs
 * here, all writes would wait at that point until the disk has written all pages. A failure is ignored, because SQLite's own sync fails too.
 */
function syncCarried(): void {
  if (file === null) return
  try {
    fdatasyncSync(file)
  } catch {}
}

port.on('message', (order: CheckpointOrder) => {
  try {
    for (let pass = 0; pass < PASSES_MAX[order] && pagesLeft() > LEFT_PAGES; pass++) {
      carry.get()
      syncCarried()
    }
  } finally {
    port.postMessage(order)
  }
})
