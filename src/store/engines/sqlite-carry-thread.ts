import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'

/** Carries the log of changes over to the database while the writer writes on. What cannot be carried now is left for the next time. */
if (parentPort === null) throw new Error('this file is a thread of the store; it is not run by itself')
const port = parentPort
const db = new Database(String(workerData), { fileMustExist: true })
db.pragma('synchronous = FULL')
const carry = db.prepare('PRAGMA wal_checkpoint(PASSIVE)')
port.on('message', () => {
  try {
    carry.get()
  } finally {
    port.postMessage('carried')
  }
})
