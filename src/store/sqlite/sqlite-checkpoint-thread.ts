import { fdatasyncSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import type { CheckpointData, CheckpointOrder } from './sqlite-checkpointer.ts'

/** So few pages are left to the writer, for which everybody waits: of many even the sync alone would take long. */
const LEFT_PAGES = 64
/** The writer writes on meanwhile, so each pass leaves some; each leaves fewer than the one before, if the disk can follow at all. */
const PASSES_MAX: Readonly<Record<CheckpointOrder, number>> = { some: 1, all: 6 }

/** Carries the log of changes over to the database while the writer writes on. What cannot be carried now is left for the next time. */
if (parentPort === null) throw new Error('this file is a thread of the store; it is not run by itself')
const port = parentPort
// Only `createCheckpointer` starts this thread, with this data.
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
 * SQLite syncs the database only when nothing at all is left, which is when the writer carries over the last: everybody would wait for the
 * disk to write all that was carried since the log was begun. A sync that fails is SQLite's to see: its own is told the same.
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
