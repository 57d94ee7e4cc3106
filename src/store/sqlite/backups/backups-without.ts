import Database from 'better-sqlite3'
import { ERASURE_LINEAGE, type ErasureTrace, UNCLEAR } from '../../../domain/admin/erasure.ts'
import { parseRestores } from '../../../domain/admin/restore.ts'
import type { BackupComparison } from '../../../flow/admin/backups/backup-ports.ts'
import { RESTORES } from '../../restores.ts'
import { storageStateIn } from '../clean-storage.ts'
import { fileOf } from './backup-folder.ts'
import { readManifest } from './manifest.ts'

/** Returns which backups are certainly without erased parcels. One that cannot be read is not. */
export function backupsWithout({ directory, names, relayId, trace }: BackupComparison): readonly string[] {
  return names.filter((name) => isWithout(fileOf(directory, name), relayId, trace))
}

function isWithout(file: string, relayId: string, trace: ErasureTrace): boolean {
  try {
    const db = new Database(file, { readonly: true, fileMustExist: true })
    try {
      // Before a restore other parcels had the same ids, and records may have come that the restored store lacks.
      if (readManifest(db)?.relayId !== relayId || restoredAtMs(db) !== trace.restoredAtMs) return false
      return isFromBefore(db, trace) || isFromAfter(db, trace)
    } finally {
      db.close()
    }
  } catch {
    return false
  }
}

/** Whether the backup was made before the parcels were known, and holds no push that may have named them. */
function isFromBefore(db: Database.Database, { firstParcelId }: ErasureTrace): boolean {
  const last = "select max(seq) from (select seq from sqlite_sequence where name = 'parcel' union all select max(id) from parcel)"
  return numberIn(db, last) < firstParcelId && numberIn(db, 'select exists (select 1 from inbox where parcel_id = 0)') === 0
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
