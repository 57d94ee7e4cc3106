import { statSync } from 'node:fs'
import Database from 'better-sqlite3'
import { systemCode } from '../../core/domain/errors.ts'
import { type KeptTombstones, type MarkedTombstone, unitedTombstones } from '../../core/domain/history/erased.ts'
import { systemReason } from '../../core/domain/system-reason.ts'
import { TOMBSTONE_KEY } from '../../core/store/settings.ts'
import { isDamage, isFull, openingFailure } from '../../core/store/sqlite/file.ts'
import { readTombstoneFile, tombstoneFileOf } from '../../core/store/sqlite/tombstone-file.ts'
import { onFile } from '../../regular-file.ts'
import { BACKUP_STATE, type BackupState, NO_BACKUPS, parseBackupState } from '../backups/backup.rules.ts'
import { digestFile, lastSequenceIn, proveTable, readDigest, readManifest, relayIdIn, storedTables } from '../backups/backup-folder.ts'
import { readMark } from '../moving/sqlite-move-mark.ts'
import { SETTING_OF_CARRIER } from '../moving/store-moves.rows.ts'

/** An endpoint whose keys are in the store, encrypted. */
export interface SealedEndpoint {
  readonly id: string
  readonly name: string
  /** The endpoint's encrypted keys, the current one first. */
  readonly keys: readonly string[]
}

/** Checks each table of a backup with its indexes, and compares the number of rows with the manifest. */
export function inspectBackup(file: string) {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found === undefined) throw new Error(`${file} does not exist`)
  if (!found.isFile()) throw new Error(`${file} is not a file`)
  return reading(file, (db) => {
    const manifest = readManifest(db)
    if (manifest === null) throw new Error(`${file} is no backup made by "parcel-relay backup"`)
    if (manifest.isDigested === true) proveDigest(file, readDigest(db))
    for (const table of storedTables(db)) {
      const rows = proveTable(db, table)
      if (rows !== manifest.rows[table])
        throw new Error(
          `${file} is damaged: the table ${table} holds ${rows} rows, and the backup was made with ${manifest.rows[table] ?? 'none'}`,
        )
    }
    return { manifest, sealed: sealedIn(db), tombstones: tombstonesIn(db) }
  })
}

/** Throws if a byte of the file has changed since the backup was made. */
function proveDigest(file: string, digest: string): void {
  const digesting = digestFile(file, digest)
  let turn = digesting.next()
  while (turn.done !== true) turn = digesting.next()
  if (turn.value?.digest !== digest)
    throw new Error(
      `${file} is damaged: its bytes have changed since it was made. Nothing was changed. Take another copy, or another backup.`,
    )
}

/** What is read from the store that a backup replaces. */
export interface OldStore {
  readonly relayId: string
  readonly numbers: GivenNumbers
  /** What the old store knows about the carrier and must not be lost, such as the calls of the day and pauses; null: nothing. */
  readonly carrier: Uint8Array | null
  readonly sealed: readonly SealedEndpoint[]
  /** How many deliveries with sequences above those of the backup were accepted. */
  readonly delivered: number
  readonly tombstones: KeptTombstones
}

const DELIVERED = 2

/** Reads the store that is replaced; null: the store does not exist or is damaged. Throws if it cannot be read now. */
export function inspectOld(path: string, sequence: number): OldStore | null {
  if (!holdsData(path)) return null
  try {
    return reading(path, (db) => {
      const mark = readMark(db)
      if (mark?.state === 'moved')
        throw new Error(`store: ${path} was moved to ${mark.peer}. Name that in \`store\`, or undo the move first.`)
      return {
        relayId: relayIdIn(db),
        numbers: numbersIn(db),
        carrier: settingIn(db, SETTING_OF_CARRIER),
        sealed: sealedIn(db),
        tombstones: tombstonesIn(db),
        delivered: Number(db.prepare('select count(*) from delivery where sequence > ? and state = ?').pluck().get(sequence, DELIVERED)),
      }
    })
  } catch (error) {
    if (systemCode(error) === null) throw error
    if (isFull(path)) throw openingFailure(path, error)
    if (isDamage(error)) return null
    throw new Error(
      `store: ${path} cannot be read now: ${systemReason(error)}. Nothing was changed. End that first. If the store is lost, move it away and restore with --last N.`,
      { cause: error },
    )
  }
}

function holdsData(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0
}

/** Reads what a store remembers of its backups. */
export function knownBackups(path: string): BackupState {
  const kept = holdsData(path) ? reading(path, (db) => settingIn(db, BACKUP_STATE)) : null
  return kept === null ? NO_BACKUPS : parseBackupState(kept.toString())
}

function settingIn(db: Database.Database, name: string): Buffer | null {
  return db.prepare<[string], Buffer>('select value from setting where name = ?').pluck().get(name) ?? null
}

/** Reads what a store and the file beside it know of erasures. Throws if a line of the file cannot be read. */
export function knownTombstones(path: string): KeptTombstones {
  return unitedTombstones(readTombstoneFile(tombstoneFileOf(path)), reading(path, tombstonesIn))
}

/** The store of an early version has no table for tombstones. */
function tombstonesIn(db: Database.Database): KeptTombstones {
  if (!storedTables(db).includes('tombstone')) return { sealedKey: null, tombstones: [] }
  const columns = 'mark, parcel_id as parcelId, erased_at_ms as erasedAtMs'
  return {
    sealedKey: settingIn(db, TOMBSTONE_KEY)?.toString() ?? null,
    tombstones: db.prepare<[], MarkedTombstone>(`select ${columns} from tombstone`).all(),
  }
}

function sealedIn(db: Database.Database): readonly SealedEndpoint[] {
  const rows = db
    .prepare<[], { id: number; name: string; sealed_keys: string }>(
      'select id, name, sealed_keys from endpoint where removed_at_ms is null and sealed_keys is not null order by id',
    )
    .all()
  return rows.map(({ id, name, sealed_keys }) => {
    // The codec of endpoints wrote this JSON, so its shape is certain.
    const keys = JSON.parse(sealed_keys) as { current: string; next: { sealed: string } | null }
    return { id: String(id), name, keys: [keys.current, keys.next?.sealed].filter((key) => typeof key === 'string') }
  })
}

function reading<T>(file: string, look: (db: Database.Database) => T): T {
  return onFile(file, () => {
    const db = new Database(file, { readonly: true, fileMustExist: true })
    try {
      return look(db)
    } finally {
      db.close()
    }
  })
}

/** The tables whose ids appear in other places, so that no id may be assigned twice. */
const NUMBERED = ['parcel', 'inbox', 'endpoint', 'delivery', 'job'] as const

/** The highest numbers that a store has assigned. */
export interface GivenNumbers extends Readonly<Record<(typeof NUMBERED)[number], number>> {
  readonly sequence: number
}

export function numbersIn(db: Database.Database): GivenNumbers {
  const number = (query: string) => Number(db.prepare(query).pluck().get() ?? 0)
  const lastOf = (table: string) =>
    Math.max(number(`select seq from sqlite_sequence where name = '${table}'`), number(`select max(id) from ${table}`))
  return {
    // If somebody has changed the store by hand, its rows may have higher numbers than its counters.
    sequence: Math.max(lastSequenceIn(db), number('select max(sequence) from feed'), number('select max(sequence) from delivery')),
    parcel: lastOf('parcel'),
    inbox: lastOf('inbox'),
    endpoint: lastOf('endpoint'),
    delivery: lastOf('delivery'),
    job: lastOf('job'),
  }
}

export function highest(a: GivenNumbers, b: GivenNumbers): GivenNumbers {
  const of = (name: keyof GivenNumbers) => Math.max(a[name], b[name])
  return {
    sequence: of('sequence'),
    parcel: of('parcel'),
    inbox: of('inbox'),
    endpoint: of('endpoint'),
    delivery: of('delivery'),
    job: of('job'),
  }
}

/** Makes each counter continue after these numbers. */
export function setNumbers(db: Database.Database, { sequence, ...ids }: GivenNumbers): void {
  db.prepare("insert or replace into setting (name, value) values ('sequence', ?)").run(Buffer.from(String(sequence)))
  for (const name of NUMBERED) {
    db.prepare('delete from sqlite_sequence where name = ?').run(name)
    db.prepare('insert into sqlite_sequence (name, seq) values (?, ?)').run(name, ids[name])
  }
}
