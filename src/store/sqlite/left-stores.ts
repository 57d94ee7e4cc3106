import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** The endings of files that belong to a store and are not counted as stores themselves. */
const REST = /-(?:wal|shm|journal)$|\.(?:key|tombstones)$/

/** The paths of the stores that restores have left beside a store. Each still holds its old data. */
export function storesLeftBeside(path: string): readonly string[] {
  const start = `${basename(path)}.before-restore-`
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(start) && !REST.test(name))
    .sort()
    .map((name) => join(dirname(path), name))
}

/** Whether a store that a move has left behind may still be there. Only a file can be looked for; a database may be anywhere. */
export function mayHoldData(name: string): boolean {
  return name.startsWith('postgres://') || existsSync(name)
}
