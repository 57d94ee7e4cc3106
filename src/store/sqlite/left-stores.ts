import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isThere } from '../../regular-file.ts'

/** The endings of files that belong to a store and are not stores themselves. */
const REST = /-(?:wal|shm|journal)$|\.(?:key|tombstones)$/

/** The endings of copies that a compaction or a restore was making when it was killed. */
const UNFINISHED = ['.compact', '.restored']

/** Lists the paths of the stores that restores and kills have left beside a store. They still contain the old data. */
export function storesLeftBeside(path: string): readonly string[] {
  const start = `${basename(path)}.before-restore-`
  return readdirSync(dirname(path))
    .filter((name) => (name.startsWith(start) && !REST.test(name)) || UNFINISHED.some((ending) => name === `${basename(path)}${ending}`))
    .sort()
    .map((name) => join(dirname(path), name))
}

/** Whether a store that a move has left behind may still exist. A database cannot be looked for here, so it counts as existing. */
export function mayHoldData(name: string): boolean {
  return name.startsWith('postgres://') || isThere(name)
}
