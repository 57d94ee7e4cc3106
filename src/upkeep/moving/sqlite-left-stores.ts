import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isThere } from '../../regular-file.ts'
import { copyFiles } from '../backups/copy-store.ts'

/** The endings of files in which SQLite may hold data of a store. */
const LOG = /-(?:wal|shm|journal)$/
/** The endings of files that belong to a store and hold no data of parcels. */
const OTHER = /\.(?:key|tombstones)$/

/** The endings of copies that a compaction or a restore was making when it was killed. */
const UNFINISHED = ['.compact', '.restored']

/** Lists the files of the stores that restores and kills have left beside a store. They still contain the old data, a log without its store too. */
export function storesLeftBeside(path: string): readonly string[] {
  const store = basename(path)
  const isLeft = (name: string) =>
    (name.startsWith(`${store}.before-restore-`) && !OTHER.test(name)) || UNFINISHED.some((ending) => name === `${store}${ending}`)
  return readdirSync(dirname(path))
    .filter((name) => isLeft(name.replace(LOG, '')))
    .sort()
    .map((name) => join(dirname(path), name))
}

/** Lists what is still there of a store that a move has left behind. A database cannot be looked for here, so it counts as existing. */
export function filesLeftAt(name: string): readonly string[] {
  return name.startsWith('postgres://') ? [name] : copyFiles(name).filter(isThere)
}
