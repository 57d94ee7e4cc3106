import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** Files that hold the data of a store go with one of these. */
const REST = /-(?:wal|shm|journal)$|\.key$/

/** The stores that restores have left beside a store, by their paths. Each holds what it held then. */
export function storesLeftBeside(path: string): readonly string[] {
  const start = `${basename(path)}.before-restore-`
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(start) && !REST.test(name))
    .sort()
    .map((name) => join(dirname(path), name))
}
