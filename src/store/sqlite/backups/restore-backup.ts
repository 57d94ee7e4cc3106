import { closeSync, constants, copyFileSync, existsSync, fchmodSync, fsyncSync, openSync, renameSync, statSync, writeSync } from 'node:fs'
import Database from 'better-sqlite3'
import type { BackupManifest } from '../../../domain/admin/backup.ts'
import type { OperatorAction } from '../../../domain/admin/operator-action.ts'
import { addRestore, nextMultiple, parseRestores, type RestoreRecord } from '../../../domain/admin/restore.ts'
import { systemCode } from '../../../domain/errors.ts'
import type { KeptTombstones, MarkedTombstone } from '../../../domain/history/erased.ts'
import { readRegular } from '../../../regular-file.ts'
import { SETTING_OF_CARRIER } from '../../moving/moved-tables.ts'
import { RESTORES } from '../../restores.ts'
import { TOMBSTONE_KEY } from '../../settings.ts'
import { holdStore } from '../hold-store.ts'
import { migrate } from '../migrate.ts'
import { dropMark, dropMoveParts, readMark } from '../moving/move-mark.ts'
import { FILE_MODE } from '../permissions.ts'
import { readGivenTombstones, readTombstoneFile, tombstoneFileOf, writeTombstoneFile } from '../tombstone-file.ts'
import { MANIFEST_TABLE, proveTable, readManifest, storedTables } from './manifest.ts'
import { type GivenNumbers, highest, numbersIn, setNumbers } from './numbers.ts'
import { createLacks, erasuresUnknown, numbersUnknown } from './restore-lacks.ts'
import { asideEnding, finishSwap, preparedKeyOf, preparedOf, removePrepared, swapStore } from './swap-store.ts'

export interface RestoreOrder {
  readonly file: string
  /** The path of the store, which may be missing. */
  readonly store: string
  /** The highest sequence that any reader or endpoint has seen; null: it is read from the store that is replaced. */
  readonly last: number | null
  /** A file of tombstones that the operator has named; null: the tombstones beside or in the replaced store are used. */
  readonly tombstones: string | null
  /** Whether the operator accepts that erased data may come back. Needed only if the tombstones are lost. */
  readonly forgetsErasures: boolean
  /** Whether a store that is newer than the backup may be replaced. */
  readonly isConfirmed: boolean
  readonly nowMs: number
  readonly by: OperatorAction['by']
}

export interface RestorePorts {
  /**
   * Checks that the secrets in the backup can be decrypted. Throws otherwise, except in a restore without keys. `keyFile`: the key beside
   * the backup or, without one, beside the store. `tombstoneKey`: the encrypted key of the tombstones; null: nothing was erased.
   */
  readonly proveKeys: (keys: {
    readonly sealed: readonly SealedEndpoint[]
    readonly sealedBefore: readonly SealedEndpoint[]
    readonly keyFile: Uint8Array | null
    readonly keyFileBefore: Uint8Array | null
    readonly tombstoneKey: string | null
    readonly manifest: BackupManifest
  }) => Promise<ProvedKeys>
  readonly onStep: (step: string) => void
}

/** The secrets of a backup that cannot be used any more. */
export interface ProvedKeys {
  /** The names of endpoints whose key in the backup differs from the key that signs their deliveries now. */
  readonly otherKeys: readonly string[]
  /** The names of endpoints whose key in the backup cannot be decrypted. */
  readonly lostKeys: readonly string[]
  /** Whether the key of the tombstones cannot be decrypted. Nobody can tell then which identifiers were erased, so the tombstones are dropped. */
  readonly isTombstoneKeyLost: boolean
}

/** An endpoint whose keys are in the store, encrypted. */
export interface SealedEndpoint {
  readonly id: string
  readonly name: string
  /** The endpoint's encrypted keys, the current one first. */
  readonly keys: readonly string[]
}

export type Restored =
  | { readonly kind: 'finished'; readonly aside: string | null }
  | ({ readonly kind: 'restored'; readonly aside: string | null; readonly restore: RestoreRecord } & Pick<
      ProvedKeys,
      'otherKeys' | 'lostKeys'
    >)

/**
 * Replaces a store by a backup, while no relay uses the store. Checks the backup, copies it beside the store, and raises the copy's counters.
 * Then renames the files, and keeps the old store under another name. If an earlier restore was interrupted while it renamed files, only
 * finishes that restore.
 */
export async function restoreBackup(order: RestoreOrder, ports: RestorePorts): Promise<Restored> {
  const { path, lock } = holdStore(order.store, () => undefined)
  try {
    const finished = finishSwap(path)
    if (finished !== null) return { kind: 'finished', ...finished }
    removePrepared(path)
    return await restore(order, path, ports)
  } catch (error) {
    removePrepared(path)
    throw error
  } finally {
    lock.release()
  }
}

async function restore(order: RestoreOrder, path: string, ports: RestorePorts): Promise<Restored> {
  ports.onStep('checking the backup')
  const { manifest, sealed, tombstones } = inspectBackup(order.file)
  const before = inspectOld(path, manifest.sequence)
  const lacks = createLacks()
  if (before === null && order.last === null) lacks.note(numbersUnknown(order.store))
  if (before !== null && before.numbers.sequence > manifest.sequence && !order.isConfirmed) refuseNewer(before, manifest, path)
  const keyFile = keyIn(order.file.replace(/\.db$/, '.key'))
  const keyFileBefore = keyIn(`${path}.key`)
  const found = findTombstones(path, order, before)
  if (found === null) lacks.note(erasuresUnknown(tombstoneFileOf(path)))
  const erased = [found?.kept ?? null, tombstones].find((one) => one !== null && one.tombstones.length > 0)
  const keys = { sealed, sealedBefore: before?.sealed ?? [], keyFile: keyFile ?? keyFileBefore, keyFileBefore, manifest }
  const proved = await ports.proveKeys({ ...keys, tombstoneKey: erased?.sealedKey ?? null }).catch(lacks.noteError)
  if (!lacks.isEmpty() || found === null || proved === undefined) throw lacks.refusal()
  const { otherKeys, lostKeys, isTombstoneKeyLost } = proved
  ports.onStep('copying the backup beside the store')
  copyFileSync(order.file, preparedOf(path), constants.COPYFILE_FICLONE)
  if (keyFile !== null && !keyFileBefore?.equals(keyFile)) writeKey(preparedKeyOf(path), keyFile)
  ports.onStep('raising the counters')
  const restored = await prepare(preparedOf(path), { order, before, manifest, isTombstoneKeyLost })
  const ending = asideEnding(path, order.nowMs)
  if (isTombstoneKeyLost) putAside(tombstoneFileOf(path), tombstoneFileOf(`${path}.${ending}`))
  else found.keep()
  ports.onStep('replacing the store by the copy')
  return { kind: 'restored', aside: swapStore(path, ending), restore: restored, otherKeys, lostKeys }
}

function putAside(file: string, name: string): void {
  if (existsSync(file)) renameSync(file, name)
}

interface InspectedBackup {
  readonly manifest: BackupManifest
  readonly sealed: readonly SealedEndpoint[]
  readonly tombstones: KeptTombstones
}

/** Checks each table of a backup with its indexes, and compares the number of rows with the manifest. */
function inspectBackup(file: string): InspectedBackup {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found === undefined) throw new Error(`${file} does not exist`)
  if (!found.isFile()) throw new Error(`${file} is not a file`)
  return reading(file, (db) => {
    const manifest = readManifest(db)
    if (manifest === null) throw new Error(`${file} is no backup made by "parcel-relay backup"`)
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

interface OldStore {
  readonly numbers: GivenNumbers
  /** What the old store knows about the carrier and must not be lost, such as the calls of the day and pauses; null: nothing. */
  readonly carrier: Uint8Array | null
  readonly sealed: readonly SealedEndpoint[]
  /** How many deliveries with sequences above those of the backup were accepted. */
  readonly delivered: number
  readonly tombstones: KeptTombstones
}

const DELIVERED = 2

/** Reads the store that is replaced; null: the store does not exist or cannot be read. */
function inspectOld(path: string, sequence: number): OldStore | null {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0) return null
  try {
    return reading(path, (db) => {
      const mark = readMark(db)
      if (mark?.state === 'moved')
        throw new Error(`store: ${path} was moved to ${mark.peer}. Name that in \`store\`, or undo the move first.`)
      return {
        numbers: numbersIn(db),
        carrier: db.prepare<[string], Buffer>('select value from setting where name = ?').pluck().get(SETTING_OF_CARRIER) ?? null,
        sealed: sealedIn(db),
        tombstones: tombstonesIn(db),
        delivered: Number(db.prepare('select count(*) from delivery where sequence > ? and state = ?').pluck().get(sequence, DELIVERED)),
      }
    })
  } catch (error) {
    if (systemCode(error)?.startsWith('SQLITE_') !== true) throw error
    return null
  }
}

/** The store of an early version has no table for tombstones. */
function tombstonesIn(db: Database.Database): KeptTombstones {
  if (!storedTables(db).includes('tombstone')) return { sealedKey: null, tombstones: [] }
  const sealed = db.prepare<[string], Buffer>('select value from setting where name = ?').pluck().get(TOMBSTONE_KEY)
  const columns = 'mark, parcel_id as parcelId, erased_at_ms as erasedAtMs'
  return {
    sealedKey: sealed?.toString() ?? null,
    tombstones: db.prepare<[], MarkedTombstone>(`select ${columns} from tombstone`).all(),
  }
}

/**
 * Finds the tombstones of what was erased since the backup. When the relay starts, it repeats these erasures before it serves. `keep` writes
 * the tombstones to the file beside the store. Null: nobody knows whether anything was erased.
 */
function findTombstones(
  path: string,
  { tombstones, forgetsErasures }: RestoreOrder,
  before: OldStore | null,
): { readonly kept: KeptTombstones | null; readonly keep: () => void } | null {
  const place = tombstoneFileOf(path)
  const isThere = existsSync(place)
  if (tombstones !== null) {
    if (isThere) throw new Error(`${place} is there already, so --tombstones is not needed. If it belongs to another store, move it away.`)
    const given = readGivenTombstones(tombstones)
    return { kept: given, keep: () => writeTombstoneFile(place, given) }
  }
  if (isThere || forgetsErasures) return { kept: readTombstoneFile(place), keep: () => undefined }
  if (before === null) return null
  const kept = before.tombstones
  return { kept, keep: () => (kept.tombstones.length > 0 ? writeTombstoneFile(place, kept) : undefined) }
}

function refuseNewer({ numbers }: OldStore, { madeAtMs, sequence }: BackupManifest, path: string): never {
  throw new Error(
    `${path} is newer than the backup, which was made at ${new Date(madeAtMs).toISOString()}: it holds what came since, up to sequence ${numbers.sequence} ` +
      `(the backup: ${sequence}). Nothing was changed. To go back all the same, add --yes; the store is kept under another name.`,
  )
}

interface Preparing extends Pick<ProvedKeys, 'isTombstoneKeyLost'> {
  readonly order: RestoreOrder
  readonly before: OldStore | null
  readonly manifest: BackupManifest
}

/** Turns the copy of a backup into a store whose numbers continue after those of the store that it replaces. */
async function prepare(file: string, { order, before, manifest, isTombstoneKeyLost }: Preparing): Promise<RestoreRecord> {
  const { nowMs, last } = order
  const db = new Database(file, { fileMustExist: true })
  try {
    db.pragma('synchronous = FULL')
    db.exec(`drop table ${MANIFEST_TABLE}`)
    await migrate(db)
    const own = numbersIn(db)
    const given = before === null ? own : highest(own, before.numbers)
    const numbers = after({ ...given, sequence: Math.max(given.sequence, last ?? 0) }, before === null ? endpointsIn(db) : null)
    const marked: RestoreRecord = {
      atMs: nowMs,
      backup: manifest.name,
      madeAtMs: manifest.madeAtMs,
      from: own.sequence,
      to: numbers.sequence,
      delivered: before?.delivered ?? null,
      isTold: false,
    }
    db.transaction(() => {
      endMove(db)
      setNumbers(db, numbers)
      if (before !== null && before.carrier !== null) saveSetting(db, SETTING_OF_CARRIER, before.carrier)
      expectNothing(db, nowMs)
      endBackups(db, nowMs)
      if (isTombstoneKeyLost) dropTombstones(db)
      mark(db, marked, order)
    })()
    return marked
  } finally {
    db.close()
    sync(file)
  }
}

/**
 * Returns the numbers from which the counters continue. `endpoints`: the number of endpoints; null: the highest ids of the replaced store are
 * known. If they are not, they are assumed to be at most the last sequence, because nearly every row with an id is written with an event of the
 * feed. An event has a delivery for each endpoint, so for deliveries the sequence is multiplied by `endpoints`.
 */
function after(given: GivenNumbers, endpoints: number | null): GivenNumbers {
  const sequence = nextMultiple(given.sequence)
  const next = (id: number, perSequence = 1) => nextMultiple(endpoints === null ? id : Math.max(id, given.sequence * perSequence))
  const { parcel, inbox, endpoint, delivery, job } = given
  const queued = next(delivery, Math.max(1, endpoints ?? 0))
  return { sequence, parcel: next(parcel), inbox: next(inbox), endpoint: next(endpoint), delivery: queued, job: next(job) }
}

/** If a move was under way when the backup was made, removes what the move had added to the store. */
function endMove(db: Database.Database): void {
  if (readMark(db) === null) return
  dropMoveParts(db)
  dropMark(db)
}

/**
 * Drops all expected pushes, because the replaced store may have received them, and they must not count as missed. Makes all polls due at
 * once, to fetch what those pushes brought.
 */
function expectNothing(db: Database.Database, nowMs: number): void {
  db.exec('delete from expected_push')
  db.prepare('update parcel set next_poll_at_ms = ? where next_poll_at_ms > ?').run(nowMs, nowMs)
}

/** Deletes tombstones whose key is lost. Nobody can tell which identifiers they stand for, and a relay would not start with them. */
function dropTombstones(db: Database.Database): void {
  db.exec('delete from tombstone')
  db.prepare('delete from setting where name = ?').run(TOMBSTONE_KEY)
}

/** Marks the job that made this backup as done. It was still under way when the store was copied. */
function endBackups(db: Database.Database, nowMs: number): void {
  db.prepare("update job set state = 'done', ended_at_ms = ? where kind = 'backup' and ended_at_ms is null").run(nowMs)
}

function mark(db: Database.Database, restored: RestoreRecord, { nowMs, by, file }: RestoreOrder): void {
  const kept = db.prepare<[string], Buffer>('select value from setting where name = ?').pluck().get(RESTORES)
  const restores = addRestore(kept === undefined ? [] : parseRestores(kept.toString()), restored)
  saveSetting(db, RESTORES, Buffer.from(JSON.stringify(restores)))
  const detail = { file, madeAt: new Date(restored.madeAtMs ?? 0).toISOString(), lastSequence: restored.from, nextSequence: restored.to }
  db.prepare(
    `insert into operator_action (at_ms, by_kind, by_name, address, action, target_kind, target, detail)
      values (?, ?, ?, null, 'store.restored', 'store', ?, ?)`,
  ).run(nowMs, by.kind, by.name, restored.backup, JSON.stringify(detail))
}

function saveSetting(db: Database.Database, name: string, value: Uint8Array): void {
  db.prepare('insert or replace into setting (name, value) values (?, ?)').run(name, value)
}

function sealedIn(db: Database.Database): readonly SealedEndpoint[] {
  const rows = db
    .prepare<[], { id: number; name: string; sealed_keys: string }>(
      'select id, name, sealed_keys from endpoint where removed_at_ms is null and sealed_keys is not null order by id',
    )
    .all()
  return rows.map(({ id, name, sealed_keys }) => {
    // The codec of endpoints wrote this JSON, so its shape is certain.
    const keys = JSON.parse(sealed_keys) as Record<'current', string> & Record<'next' | 'previous', { sealed: string } | null | undefined>
    return { id: String(id), name, keys: [keys.current, keys.next?.sealed, keys.previous?.sealed].filter((key) => typeof key === 'string') }
  })
}

function endpointsIn(db: Database.Database): number {
  return Number(db.prepare('select count(*) from endpoint').pluck().get())
}

function reading<T>(file: string, look: (db: Database.Database) => T): T {
  const db = new Database(file, { readonly: true, fileMustExist: true })
  try {
    return look(db)
  } finally {
    db.close()
  }
}

function keyIn(file: string): Buffer | null {
  return existsSync(file) ? Buffer.from(readRegular(file).toString().trim(), 'base64') : null
}

function writeKey(file: string, key: Buffer): void {
  const handle = openSync(file, 'wx', FILE_MODE)
  try {
    fchmodSync(handle, FILE_MODE)
    writeSync(handle, `${key.toString('base64')}\n`)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

function sync(file: string): void {
  const handle = openSync(file, 'r+')
  try {
    fchmodSync(handle, FILE_MODE)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
