import { lstatSync, readFileSync, readlinkSync, realpathSync, type Stats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { systemCode } from '../../domain/errors.ts'

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
export function createIdentityCheck(path: string): () => Promise<LostFile | null> {
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
