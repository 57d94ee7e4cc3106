import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** Files with these endings belong to a store of the same name. */
const REST = /-(?:wal|shm|journal)$|\.key$/

/** The paths of the stores that restores have left beside a store. Each still holds its old data. */
export function storesLeftBeside(path: string): readonly string[] {
  const start = `${basename(path)}.before-restore-`
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(start) && !REST.test(name))
    .sort()
    .map((name) => join(dirname(path), name))
}
