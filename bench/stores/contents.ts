import { statSync } from 'node:fs'
import Database from 'better-sqlite3'

/** The contents of a closed store. */
export interface StoreContents {
  readonly pushes: number
  readonly quarantined: number
  readonly entries: number
  readonly parcels: number
  readonly deliveries: number
  readonly delivered: number
  /** Total size of the bodies of all pushes. */
  readonly bodyBytes: number
  /** Size of the file after a full checkpoint. */
  readonly fileBytes: number
}

/** Reads the store without the relay's code, because an ingest rate is worth nothing if the events are missing. */
export function contentsOf(storePath: string): StoreContents {
  const db = new Database(storePath, { fileMustExist: true })
  const number = (sql: string) => Number(db.prepare(sql).pluck().get())
  db.pragma('wal_checkpoint(TRUNCATE)')
  const contents = {
    pushes: number('SELECT count(*) FROM inbox WHERE state = 0'),
    quarantined: number('SELECT count(*) FROM inbox WHERE state <> 0'),
    entries: number('SELECT count(*) FROM feed WHERE kind = 0'),
    parcels: number('SELECT count(*) FROM parcel'),
    deliveries: number('SELECT count(*) FROM delivery'),
    delivered: number('SELECT count(*) FROM delivery WHERE state = 2'),
    bodyBytes: number('SELECT sum(length(body)) FROM inbox'),
  }
  db.close()
  return { ...contents, fileBytes: statSync(storePath).size }
}
