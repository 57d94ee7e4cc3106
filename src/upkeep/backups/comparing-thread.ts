import { parentPort } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { parseRestores } from '../../core/domain/admin/restore.ts'
import { searchFor } from '../../core/domain/names-in-text.ts'
import { serveVerbs } from '../../core/runtime/threads/thread.ts'
import { createSession } from '../../core/store/sqlite/sqlite.ts'
import { storageStateIn } from '../erasure/clean-storage.ts'
import { type ErasingTx, searchMentions } from '../erasure/erasure.rows.ts'
import { ERASURE_LINEAGE, type ErasureTrace, FIRST_MENTION, type MentionPlace, UNCLEAR } from '../erasure/erasure.rules.ts'
import { RESTORES } from '../restore/restores.rows.ts'
import type { BackupComparison } from './backup.rules.ts'
import { type ComparingVerbs, fileOf, readManifest } from './backup-folder.ts'

/** How many records are read at once. */
const SEARCHED = 200

/** Returns which backups are certainly without erased parcels. One that cannot be read is not. */
async function backupsWithout({ directory, names, relayId, trace }: BackupComparison): Promise<readonly string[]> {
  const without: string[] = []
  for (const name of names) if (await isWithout(fileOf(directory, name), relayId, trace)) without.push(name)
  return without
}

async function isWithout(file: string, relayId: string, trace: ErasureTrace): Promise<boolean> {
  try {
    const db = new Database(file, { readonly: true, fileMustExist: true })
    try {
      // Before a restore other parcels had the same ids, and records may have come that the restored store lacks.
      if (readManifest(db)?.relayId !== relayId || restoredAtMs(db) !== trace.restoredAtMs) return false
      return (isFromBefore(db, trace) || isFromAfter(db, trace)) && !(await holds(db, trace.names))
    } finally {
      db.close()
    }
  } catch {
    return false
  }
}

/**
 * Whether an earlier parcel in the backup has one of the identifiers, or a record may name one. The store itself may have removed both by age, so
 * that nothing but the backup tells of them.
 */
async function holds(db: Database.Database, names: ReadonlySet<string>): Promise<boolean> {
  const find = db.prepare<[string]>('select 1 from identifier where value = ?')
  if ([...names].some((name) => find.get(name) !== undefined)) return true
  const nothing = () => undefined
  const tx: ErasingTx = { ...createSession(db), run: async () => ({ rows: 0 }), enqueueWrite: nothing, noteErased: nothing }
  const search = searchFor(names)
  for (let place: MentionPlace | null = FIRST_MENTION; place !== null; ) {
    const searched = await searchMentions(tx, { search, place, limit: SEARCHED })
    if (searched.found.length > 0 || searched.unreadable > 0) return true
    place = searched.next
  }
  return false
}

/** Whether the backup was made before the parcels were known. */
function isFromBefore(db: Database.Database, { firstParcelId }: ErasureTrace): boolean {
  const last = "select max(seq) from (select seq from sqlite_sequence where name = 'parcel' union all select max(id) from parcel)"
  return numberIn(db, last) < firstParcelId
}

/** Whether the backup was made after everything about the parcels had been erased. */
function isFromAfter(db: Database.Database, { tombstones, lineage }: ErasureTrace): boolean {
  if (lineage === '' || lineage === UNCLEAR || settingIn(db, ERASURE_LINEAGE) !== lineage) return false
  if (storageStateIn(db).state !== 'clean' || numberIn(db, 'select count(*) from erasure') > 0) return false
  const find = db.prepare<[string], number>('select erased_at_ms from tombstone where mark = ?').pluck()
  return tombstones.every(({ mark, erasedAtMs }) => find.get(mark) === erasedAtMs)
}

function restoredAtMs(db: Database.Database): number | null {
  return parseRestores(settingIn(db, RESTORES)).at(-1)?.atMs ?? null
}

function settingIn(db: Database.Database, name: string): string {
  return db.prepare<[string], Buffer>('select value from setting where name = ?').pluck().get(name)?.toString() ?? ''
}

function numberIn(db: Database.Database, query: string): number {
  return Number(db.prepare(query).pluck().get() ?? 0)
}

if (parentPort === null) throw new Error('this file runs only as the thread that compares backups')
serveVerbs<ComparingVerbs>(parentPort, { without: backupsWithout })
