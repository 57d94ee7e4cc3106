import { closeSync, constants, copyFileSync, fchmodSync, fsyncSync, openSync, realpathSync, renameSync } from 'node:fs'
import { basename, dirname, join, parse } from 'node:path'
import Database from 'better-sqlite3'
import type { OperatorAction } from '../../core/domain/admin/operator-action.ts'
import { addRestore, nextMultiple, parseRestores, type RestoreRecord } from '../../core/domain/admin/restore.ts'
import { systemCode } from '../../core/domain/errors.ts'
import { type KeptTombstones, missedTombstones, unitedTombstones } from '../../core/domain/history/erased.ts'
import { TOMBSTONE_KEY } from '../../core/store/settings.ts'
import { holdStore } from '../../core/store/sqlite/lock.ts'
import { migrate } from '../../core/store/sqlite/migrate.ts'
import { readGivenTombstones, readTombstoneFile, tombstoneFileOf, writeTombstoneFile } from '../../core/store/sqlite/tombstone-file.ts'
import { FILE_MODE, readKeyFile, readKeyIfPossible, writeKeyFile } from '../../core/store/sqlite/whole-file.ts'
import { isThere, naming, onFile } from '../../regular-file.ts'
import type { BackupManifest } from '../backups/backup.rules.ts'
import { MANIFEST_TABLE } from '../backups/backup-folder.ts'
import { dropMark, dropMoveParts, readMark } from '../moving/sqlite-move-mark.ts'
import { SETTING_OF_CARRIER } from '../moving/store-moves.rows.ts'
import {
  type GivenNumbers,
  highest,
  inspectBackup,
  inspectOld,
  numbersIn,
  type OldStore,
  type SealedEndpoint,
  setNumbers,
} from './inspect-stores.ts'
import { DROP_TOKEN_KEYS, DROP_UNTOLD, RESTORES } from './restores.rows.ts'
import { asideEnding, finishSwap, foldLog, type PutAside, preparedKeyOf, preparedOf, removePrepared, swapStore } from './swap-store.ts'

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
  /** Whether the backup may be of another relay than the store that it replaces. */
  readonly isOtherRelay: boolean
  readonly nowMs: number
  readonly by: OperatorAction['by']
}

export interface RestorePorts {
  /**
   * Checks that the secrets in the backup can be decrypted. Throws otherwise, except in a restore without keys. `keyFile`: the key beside
   * the backup or, without one, beside the store. `tombstoneKeys`: the encrypted keys of the tombstones; none: nothing was erased.
   */
  readonly proveKeys: (keys: {
    readonly sealed: readonly SealedEndpoint[]
    readonly sealedBefore: readonly SealedEndpoint[]
    readonly keyFile: Uint8Array | null
    readonly keyFileBefore: Uint8Array | null
    readonly tombstoneKeys: readonly string[]
    readonly manifest: BackupManifest
  }) => Promise<ProvedKeys>
  readonly onStep: (step: string) => void
}

/** The secrets of a backup that cannot be used any more, and the one of its tombstones that can. */
export interface ProvedKeys {
  /** The names of endpoints whose key in the backup differs from the key that signs their deliveries now. */
  readonly otherKeys: readonly string[]
  /** The names of endpoints whose key in the backup cannot be decrypted. */
  readonly lostKeys: readonly string[]
  /**
   * The encrypted key of the tombstones that can be decrypted. Null: there is none. Nobody can tell then which identifiers were erased, so the
   * tombstones are dropped.
   */
  readonly tombstoneKey: string | null
}

export type Restored =
  | (PutAside & { readonly kind: 'finished' })
  | (PutAside &
      Pick<ProvedKeys, 'otherKeys' | 'lostKeys'> & {
        readonly kind: 'restored'
        readonly restore: RestoreRecord
        /** How many identifiers were erased since the backup. The next start erases them again. */
        readonly erasedSince: number
      })

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
  const isOther = before !== null && isOfOtherRelay(before, manifest)
  if (isOther && !order.isOtherRelay) refuseOtherRelay(before, manifest, path)
  // The store of another relay knows nothing of what the relay of the backup did since.
  const own = isOther ? null : before
  const lacks = createLacks()
  if (own === null && order.last === null) lacks.note(numbersUnknown(order.store, isOther))
  if (own !== null && own.numbers.sequence > manifest.sequence && !order.isConfirmed) refuseNewer(own, manifest, path)
  const keyFile = keyOfBackup(order.file)
  const keyFileBefore = readKeyIfPossible(`${path}.key`)
  const { forgetsErasures } = order
  const sources = { path, given: order.tombstones, forgetsErasures, isOther, before: own?.tombstones ?? null, backup: tombstones }
  const found = findTombstones(sources, lacks)
  const keys = { sealed, sealedBefore: before?.sealed ?? [], keyFile: keyFile ?? keyFileBefore, keyFileBefore, manifest }
  const proved = await ports.proveKeys({ ...keys, tombstoneKeys: found.sealedKeys }).catch(lacks.noteError)
  if (!lacks.isEmpty() || proved === undefined) throw lacks.refusal()
  const { otherKeys, lostKeys, tombstoneKey } = proved
  ports.onStep('copying the backup beside the store')
  copyFileSync(order.file, preparedOf(path), constants.COPYFILE_FICLONE)
  if (keyFile !== null && !keyFileBefore?.equals(keyFile)) writeKeyFile(preparedKeyOf(path), keyFile)
  ports.onStep('raising the counters')
  const restored = await prepare(preparedOf(path), { order, before, isOther, manifest, isTombstoneKeyLost: tombstoneKey === null })
  const ending = asideEnding(path, order.nowMs)
  keepTombstones(path, found.kept, tombstoneKey, `${path}.${ending}`)
  ports.onStep('replacing the store by the copy')
  const erasedSince = tombstoneKey === null ? 0 : missedTombstones(found.kept.tombstones, tombstones.tombstones).length
  if (before !== null) foldLog(path)
  return { kind: 'restored', ...swapStore(path, ending), restore: restored, otherKeys, lostKeys, erasedSince }
}

/** The relays of early versions had no id, so theirs count as the same. */
function isOfOtherRelay({ relayId }: OldStore, manifest: BackupManifest): boolean {
  return relayId !== '' && manifest.relayId !== '' && relayId !== manifest.relayId
}

function refuseOtherRelay({ relayId }: OldStore, manifest: BackupManifest, path: string): never {
  throw new Error(
    `the backup "${manifest.name}" is of another relay (${manifest.relayId}) than ${path} (${relayId}). Nothing was changed. ` +
      'If you do want to replace that store with it, as on a machine where a new relay has run, add --other-relay, with --last N and either --tombstones FILE or --forget-erasures.',
  )
}

function refuseNewer({ numbers }: OldStore, { madeAtMs, sequence }: BackupManifest, path: string): never {
  throw new Error(
    `${path} is newer than the backup, which was made at ${new Date(madeAtMs).toISOString()}: it holds what came since, up to sequence ${numbers.sequence} ` +
      `(the backup: ${sequence}). Nothing was changed. To go back all the same, add --yes; the store is kept under another name.`,
  )
}

interface Preparing {
  readonly order: RestoreOrder
  readonly before: OldStore | null
  /** Whether `before` is the store of another relay. */
  readonly isOther: boolean
  readonly manifest: BackupManifest
  readonly isTombstoneKeyLost: boolean
}

/** Turns the copy of a backup into a store whose numbers continue after those of the store that it replaces. */
async function prepare(file: string, { order, before, isOther, manifest, isTombstoneKeyLost }: Preparing): Promise<RestoreRecord> {
  const { nowMs, last } = order
  const db = new Database(file, { fileMustExist: true })
  try {
    db.pragma('synchronous = FULL')
    db.exec(`drop table ${MANIFEST_TABLE}`)
    await migrate(db)
    const own = numbersIn(db)
    const given = before === null ? own : highest(own, before.numbers)
    const numbers = after({ ...given, sequence: Math.max(given.sequence, last ?? 0) }, before === null || isOther ? endpointsIn(db) : null)
    const marked: RestoreRecord = {
      atMs: nowMs,
      backup: manifest.name,
      madeAtMs: manifest.madeAtMs,
      from: own.sequence,
      to: numbers.sequence,
      delivered: isOther ? null : (before?.delivered ?? null),
      isTold: false,
    }
    db.transaction(() => {
      endMove(db)
      setNumbers(db, numbers)
      if (before !== null && before.carrier !== null) saveSetting(db, SETTING_OF_CARRIER, before.carrier)
      expectNothing(db, nowMs)
      endBackups(db, nowMs)
      if (isTombstoneKeyLost) dropTombstones(db)
      db.exec(DROP_TOKEN_KEYS)
      db.exec(DROP_UNTOLD)
      mark(db, marked, order)
    })()
    return marked
  } catch (error) {
    throw naming(file, error)
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

function endpointsIn(db: Database.Database): number {
  return Number(db.prepare('select count(*) from endpoint').pluck().get())
}

/** Reads the key beside a backup, or beside the file to which a link with the name of the backup leads; null: there is none. */
function keyOfBackup(file: string): Buffer | null {
  const places = [file, realpathSync(file)].map((one) => join(dirname(one), `${parse(one).name}.key`))
  const place = places.find((one) => one !== file && isThere(one))
  return place === undefined ? null : readKeyFile(place)
}

function sync(file: string): void {
  const handle = openSync(file, 'r+')
  try {
    fchmodSync(handle, FILE_MODE)
    onFile(file, () => fsyncSync(handle))
  } finally {
    closeSync(handle)
  }
}

/** The tombstones of what was erased since a backup. When the relay starts, it repeats these erasures before it serves. */
interface FoundTombstones {
  /** What the file and the replaced store know together. */
  readonly kept: KeptTombstones
  /** The sealed keys that made the marks of `kept` and of the backup. They may be one key, sealed with several at-rest keys. */
  readonly sealedKeys: readonly string[]
}

interface TombstoneSources {
  /** The path of the store. */
  readonly path: string
  /** A file that the operator has named; null: the file beside the store is read. */
  readonly given: string | null
  readonly forgetsErasures: boolean
  /** Whether the replaced store is of another relay than the backup. The file beside it is never used. */
  readonly isOther: boolean
  /** The tombstones in the replaced store; null: it is gone, cannot be read, or is of another relay. */
  readonly before: KeptTombstones | null
  readonly backup: KeptTombstones
}

/** Finds what is known of erasures. If nobody can know what was erased, notes that in `lacks`. Throws if the file cannot be read. */
function findTombstones({ path, given, forgetsErasures, isOther, before, backup }: TombstoneSources, lacks: Lacks): FoundTombstones {
  const place = tombstoneFileOf(path)
  if (isOther && isThere(place) && !forgetsErasures) lacks.note(tombstonesOfOther(place))
  else if (given !== null && isThere(place))
    throw new Error(`${place} is there already, so --tombstones is not needed. If it belongs to another store, move it away.`)
  const file =
    given !== null ? readGivenTombstones(given) : isOther ? null : forgetsErasures ? readIfPossible(place) : readTombstoneFile(place)
  const kept = unitedTombstones(file, before)
  const isKnown = before !== null || (file !== null && file.sealedKey !== null)
  if (!forgetsErasures && (!isKnown || (kept.tombstones.length > 0 && kept.sealedKey === null))) lacks.note(erasuresUnknown(place))
  const sources = [kept, file, before, backup].filter((one) => one !== null && one.tombstones.length > 0)
  return { kept, sealedKeys: [...new Set(sources.flatMap((one) => one?.sealedKey ?? []))] }
}

/** The operator accepts that erased data may come back, so a damaged file is no obstacle. One that cannot be read now may be whole. */
function readIfPossible(place: string): KeptTombstones | null {
  try {
    return readTombstoneFile(place)
  } catch (error) {
    if (systemCode(error) !== null) throw error
    return null
  }
}

/**
 * Writes the tombstones to the file beside the store. `sealedKey`: a sealed key that can be opened; null: there is none, so the tombstones are
 * of no use, and the file is put aside.
 */
function keepTombstones(path: string, { tombstones }: KeptTombstones, sealedKey: string | null, aside: string): void {
  const place = tombstoneFileOf(path)
  if (sealedKey !== null && tombstones.length > 0) writeTombstoneFile(place, { sealedKey, tombstones })
  else if (isThere(place)) renameSync(place, tombstoneFileOf(aside))
}

/** Collects everything that an operator must still provide, so that one error names all of it. A restore is usually urgent. */
type Lacks = ReturnType<typeof createLacks>

function createLacks() {
  const lacks: string[] = []
  return {
    note: (lack: string) => void lacks.push(lack),
    /** If something is lacking already, adds the message of an error. Otherwise throws the error as it is. */
    noteError(error: unknown) {
      if (lacks.length === 0 || !(error instanceof Error)) throw error
      lacks.push(error.message)
    },
    isEmpty: () => lacks.length === 0,
    refusal: (): Error => new Error(`${lacks.join('\n')}${lacks.at(-1)?.includes(UNCHANGED) === true ? '' : ` ${UNCHANGED}`}`),
  }
}

const UNCHANGED = 'Nothing was changed.'

function numbersUnknown(store: string, isOther: boolean): string {
  return (
    `${store} ${isOther ? 'is of another relay than the backup' : 'is gone or cannot be read'}, so nobody knows which numbers ${isOther ? 'the relay of the backup' : 'it'} has given. Name the highest sequence that any reader or endpoint has seen ` +
    '(`relay-sequence`, `webhook-id`, or the `after` of a reader of the feed): --last N. Somewhat too high does no harm.'
  )
}

/** @param place the file beside the lost store that listed what was erased; it existed only if something was erased */
function erasuresUnknown(place: string): string {
  return (
    'Nobody knows what was erased since the backup, and it would come back. If anything ever was erased, ' +
    `a file ${basename(place)} lay beside the store of the relay that made the backup: name a copy of it with --tombstones FILE. If nothing was erased, or it may come back: --forget-erasures.`
  )
}

function tombstonesOfOther(place: string): string {
  return (
    `${place} lies beside the store of another relay than the backup. Move it away; if it is a copy of what the relay of the backup has erased, ` +
    'name it with --tombstones FILE. What the other relay has erased comes back if the backup holds it: erase that again.'
  )
}
