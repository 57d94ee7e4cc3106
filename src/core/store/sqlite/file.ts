import {
  closeSync,
  fdatasyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  type Stats,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs'
import { stat, statfs } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { isThere, refuseIrregular } from '../../../regular-file.ts'
import { systemCode } from '../../domain/errors.ts'
import { reasonOfCode } from '../../domain/system-reason.ts'
import { closeFolder, FOLDER_MODE, STORE_SUFFIXES, syncFolder, writeWhole } from './whole-file.ts'

const MAGIC = 'SQLite format 3\0'
const CHUNK_BYTES = 1024 * 1024

/** The marker shows that the database has held data. Without it, a lost database would pass for a new one. */
const markerOf = (path: string) => `${path}.marker`
const logOf = (path: string) => `${path}-wal`

/**
 * Creates the store's folder if it does not exist. Only the relay's user can open the folder, and its name survives a power cut. Creates one
 * folder at a time, because Node's recursive `mkdir` never ends where no folder can be made, as in /proc.
 */
export function makeFolder(folder: string): void {
  const path = resolve(folder)
  if (isThere(path)) return
  const parent = dirname(path)
  if (parent !== path) makeFolder(parent)
  makeOne(path)
  closeFolder(path)
  syncFolder(parent)
}

function makeOne(folder: string): void {
  try {
    mkdirSync(folder, { mode: FOLDER_MODE })
  } catch (error) {
    // Another relay may have created the folder at the same time.
    if (systemCode(error) !== 'EEXIST' || !statSync(folder).isDirectory()) throw error
  }
}

/** Throws if one of the store's files is not a regular file. Opening a named pipe, for example, may never end. */
export function refuseIrregularFiles(path: string): void {
  for (const suffix of STORE_SUFFIXES) refuseIrregular(`${path}${suffix}`)
}

/**
 * Throws an error with the remedy if a database file that held data is missing or empty, or if its header is damaged. Call it before SQLite opens
 * the file: SQLite would treat a missing or empty file as new, and delete its WAL.
 */
export function refuseDamage(path: string): void {
  const bytes = sizeOf(path)
  if (bytes === null || bytes === 0) {
    const witness = isThere(markerOf(path)) ? markerOf(path) : (sizeOf(logOf(path)) ?? 0) > 0 ? logOf(path) : null
    if (witness === null) return
    throw new Error(
      `store: ${path} is ${bytes === null ? 'gone' : 'empty'}, but ${witness} shows that it held data. Nothing was changed. ` +
        `Restore a backup; or, to begin with an empty store, move ${basename(path)}.marker and ${basename(path)}-wal away first.`,
    )
  }
  const head = Buffer.alloc(MAGIC.length)
  const file = openSync(path, 'r')
  try {
    readSync(file, head, 0, head.length, 0)
  } finally {
    closeSync(file)
  }
  if (head.toString('latin1') !== MAGIC) throw new Error(explain(path, 'SQLITE_NOTADB'))
}

export function leaveMarker(path: string): void {
  if (isThere(markerOf(path))) return
  writeWhole(
    markerOf(path),
    `${basename(path)} holds the data of a parcel relay. While this file is here, the relay never begins with an empty store.\n`,
  )
}

/**
 * Rewrites the WAL with the same bytes and syncs it. After a failed sync, the kernel holds pages in memory that it wrongly counts as written, and
 * SQLite would trust them after a restart of the process. The caller must hold the write lock.
 */
export function rewriteLog(path: string): void {
  if ((sizeOf(logOf(path)) ?? 0) === 0) return
  const chunk = Buffer.alloc(CHUNK_BYTES)
  const file = openSync(logOf(path), 'r+')
  try {
    let at = 0
    for (let read = readSync(file, chunk, 0, CHUNK_BYTES, at); read > 0; read = readSync(file, chunk, 0, CHUNK_BYTES, at)) {
      for (let written = 0; written < read; ) written += writeSync(file, chunk, written, read - written, at + written)
      at += read
    }
    fdatasyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Turns a system error into one that names the path, the cause and the remedy. Returns any other error as it is. */
export function openingFailure(path: string, error: unknown): unknown {
  const code = systemCode(error)
  return code === null ? error : new Error(explain(path, isFull(path) ? 'ENOSPC' : code), { cause: error })
}

function explain(path: string, code: string): string {
  const folder = dirname(path)
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'SQLITE_FULL')
    return `store: the disk is full: there is no room in ${folder} to open ${path}. Nothing was deleted; free some space.`
  if (code === 'SQLITE_NOTADB')
    return `store: ${path} is not a SQLite database, or its header is damaged. Nothing was changed. Restore a backup, or name another file.`
  if (code === 'EIO' || code.startsWith('SQLITE_CORRUPT') || code.startsWith('SQLITE_IOERR'))
    return `store: ${path} could not be opened: the file is damaged or the disk is failing. Nothing was deleted. Check the disk, then restore a backup if necessary.`
  if (code.startsWith('SQLITE_BUSY')) return `store: another program has locked ${path}. Close it, then start again.`
  return `store: ${path} cannot be opened for writing: ${reasonOfCode(code)}. The relay's user must be able to write the file and its folder ${folder}.`
}

/** Whether an error is about the bytes of a database. All others may end by themselves, such as one of a full disk. */
export function isDamage(error: unknown): boolean {
  return /^SQLITE_(?:NOTADB|CORRUPT|ERROR|IOERR_CORRUPTFS)(?:_|$)/.test(systemCode(error) ?? '')
}

/** The code of an error does not tell this, because a full disk causes many codes. */
export function isFull(path: string): boolean {
  try {
    return statfsSync(dirname(path)).bavail === 0
  } catch {
    return false
  }
}

function sizeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.size ?? null
}

/**
 * Makes a function that returns a file descriptor, for syncs and reads; null: the file could not be opened. Never close the descriptor: this would
 * drop all POSIX locks that the process has on the file.
 */
export function keepOpen(path: string): () => number | null {
  let file: number | null = null
  return () => {
    try {
      file ??= openSync(path, 'r')
    } catch {
      return null
    }
    return file
  }
}

/** The most symbolic links to follow, the same number as in Linux. */
const LINKS_MAX = 40
/** The suffixes of the files that SQLite keeps open. If they are deleted, SQLite goes on writing to them. */
const OPEN_FILES = ['', '-wal', '-shm']

/**
 * Resolves symbolic links to the store's file. The lock, the marker, the key and SQLite's WAL are named after that file. So relays that use
 * different links find the same lock.
 */
export function followLinks(path: string): string {
  let file = path
  for (let links = 0; links <= LINKS_MAX; links++) {
    if (lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return file
    file = resolve(realpathSync(dirname(file)), readlinkSync(file))
  }
  throw new Error(`store: ${path} is a symbolic link to a file that does not exist, or part of a loop of links`)
}

/**
 * Throws if the database has several names (hard links) and another process has it open. Each name has a separate lock and WAL, so two
 * relays would not notice each other.
 */
export function refuseSecondName(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined || found.nlink === 1) return
  const names = `store: ${path} has ${found.nlink} names (hard links)`
  const holders = holdersOf(found.ino)
  if (holders === null) throw new Error(`${names}, and this system does not report whether it is open under another. Give it one name.`)
  const [pid] = holders
  if (pid !== undefined)
    throw new Error(`${names}, and a relay is already running on it under another of them, pid ${pid}. One store has one relay.`)
}

/** Returns the ids of the processes that have a lock on a file, as the kernel reports them; null: the system is not Linux and reports none. */
export function holdersOf(inode: number): readonly number[] | null {
  try {
    const held = readFileSync('/proc/locks', 'utf8').matchAll(/(\d+) [0-9a-f]+:[0-9a-f]+:(\d+) /g)
    return [...held].filter(([, , locked]) => Number(locked) === inode).map(([, pid]) => Number(pid))
  } catch {
    return null
  }
}

/** A store file that was deleted or replaced while the relay had it open. */
export interface LostFile {
  readonly name: string
  readonly fate: 'gone' | 'replaced'
}

/** Makes a function that finds an open file of the store that was deleted or replaced since the function first saw the file. */
function createIdentityCheck(path: string): () => Promise<LostFile | null> {
  const known = new Map<string, string>()
  return async () => {
    for (const suffix of OPEN_FILES) {
      const file = `${path}${suffix}`
      const identity = await identityOf(file)
      const before = known.get(file)
      if (before === undefined && identity !== null) known.set(file, identity)
      else if (before !== identity && before !== undefined) return { name: basename(file), fate: identity === null ? 'gone' : 'replaced' }
    }
    return null
  }
}

/** Returns a text that identifies a file on this machine; null: the file or its folder does not exist. */
export async function identityOf(file: string): Promise<string | null> {
  const found = await ifThere(stat(file, { bigint: true }))
  return found === null ? null : `${found.dev}:${found.ino}`
}

/** Null: nothing is at `path`. Rejects if nobody can know. */
export function statIfThere(path: string): Promise<Stats | null> {
  return ifThere(stat(path))
}

async function ifThere<T>(looked: Promise<T>): Promise<T | null> {
  try {
    return await looked
  } catch (error) {
    const code = systemCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw error
  }
}

interface StoreFiles {
  /** Free disk space for the relay's user. */
  readonly freeBytes: number
  readonly diskBytes: number
  readonly storeBytes: number
  /** Size of the WAL. */
  readonly logBytes: number
  /** A file of the store that was deleted or replaced; null: all are still there. */
  readonly lost: LostFile | null
  /** Whether the lock file was replaced since the last check. */
  readonly isRelocked: boolean
}

/**
 * Returns the size of the disk of a store, and its free space for the relay's user. If the store's folder does not exist yet, measures the disk of the
 * nearest folder above that exists.
 */
export async function roomNear(path: string): Promise<Pick<StoreFiles, 'freeBytes' | 'diskBytes'>> {
  let folder = dirname(resolve(path))
  while ((await statIfThere(folder)) === null && dirname(folder) !== folder) folder = dirname(folder)
  const { bavail, blocks, bsize } = await statfs(folder)
  return { freeBytes: bavail * bsize, diskBytes: blocks * bsize }
}

/** Makes a function that checks the files of an open store. Each check compares the files with those of the first check. */
export function createDiskLook(path: string): () => Promise<StoreFiles> {
  const findLost = createIdentityCheck(path)
  let last: StoreFiles = { freeBytes: Number.POSITIVE_INFINITY, diskBytes: 0, storeBytes: 0, logBytes: 0, lost: null, isRelocked: false }
  let lock: string | null = null
  return async () => {
    const lost = await findLost()
    // If the folder is gone, the disk cannot be measured either.
    if (lost !== null) return { ...last, lost, isRelocked: false }
    const found = await identityOf(`${path}.lock`)
    const isRelocked = lock !== null && found !== null && found !== lock
    lock = found ?? lock
    const { bavail, blocks, bsize } = await statfs(dirname(path))
    const store = await statIfThere(path)
    // The WAL does not exist before the first write and after a clean stop.
    const log = await statIfThere(`${path}-wal`)
    last = {
      freeBytes: bavail * bsize,
      diskBytes: blocks * bsize,
      storeBytes: store?.size ?? 0,
      logBytes: log?.size ?? 0,
      lost,
      isRelocked,
    }
    return last
  }
}
