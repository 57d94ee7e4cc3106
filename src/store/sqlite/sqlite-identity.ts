import { lstatSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { systemCode } from '../../domain/errors.ts'

/** As many as the system itself follows. */
const LINKS_MAX = 40
/** What SQLite has open, and goes on writing to when its name is gone. */
const OPEN_FILES = ['', '-wal', '-shm']

/**
 * The file that a store's path leads to. Whatever links lead to it, its lock, its marker and its key stand beside it under its own name, as
 * SQLite's log of changes does.
 */
export function followLinks(path: string): string {
  let file = path
  for (let links = 0; links <= LINKS_MAX; links++) {
    if (lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return file
    file = resolve(realpathSync(dirname(file)), readlinkSync(file))
  }
  throw new Error(`store: ${path} is a symbolic link that leads nowhere`)
}

/**
 * Throws when another process has a database open that has several names (hard links): under each it has a lock and a log of changes of its
 * own, so two relays would not see each other.
 */
export function refuseSecondName(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined || found.nlink === 1) return
  const names = `store: ${path} has ${found.nlink} names (hard links)`
  const holders = holdersOf(found.ino)
  if (holders === null) throw new Error(`${names}, and this system does not tell whether it is open under another. Give it one name.`)
  const [pid] = holders
  if (pid !== undefined)
    throw new Error(`${names}, and a relay is already running on it under another, pid ${pid}. One store has one relay.`)
}

/** The processes that hold a lock on a file, as the kernel says; null: this system does not tell. Only Linux does. */
export function holdersOf(inode: number): readonly number[] | null {
  try {
    const held = readFileSync('/proc/locks', 'utf8').matchAll(/(\d+) [0-9a-f]+:[0-9a-f]+:(\d+) /g)
    return [...held].filter(([, , locked]) => Number(locked) === inode).map(([, pid]) => Number(pid))
  } catch {
    return null
  }
}

/** A file of the store that is not the one that the relay has open. */
export interface LostFile {
  /** Its name, without its folder. */
  readonly name: string
  readonly fate: 'gone' | 'replaced'
}

/** Tells whether the files that are open are still those under their names: each is known from when it was first there. */
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

/** Null: there is no such file, or no such folder. */
async function identityOf(file: string): Promise<string | null> {
  try {
    const { dev, ino } = await stat(file, { bigint: true })
    return `${dev}:${ino}`
  } catch (error) {
    const code = systemCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw error
  }
}
