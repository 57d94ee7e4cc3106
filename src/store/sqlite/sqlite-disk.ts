import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createIdentityCheck, type LostFile } from './sqlite-identity.ts'

interface StoreFiles {
  /** How much room the disk has left for this user. */
  readonly freeBytes: number
  /** How large the log of changes beside the database is. */
  readonly logBytes: number
  /** Null: every file is where it was. */
  readonly lost: LostFile | null
}

/** Looks after the files of a store that is open; those of the first look are the ones that are expected from then on. */
export function createDiskLook(path: string): () => Promise<StoreFiles> {
  const findLost = createIdentityCheck(path)
  let last: StoreFiles = { freeBytes: Number.POSITIVE_INFINITY, logBytes: 0, lost: null }
  return async () => {
    const lost = await findLost()
    // With its folder the disk cannot be measured either.
    if (lost !== null) return { ...last, lost }
    const { bavail, bsize } = await statfs(dirname(path))
    // There is no log before the first change and after a clean stop.
    const log = await stat(`${path}-wal`).catch(() => null)
    last = { freeBytes: bavail * bsize, logBytes: log?.size ?? 0, lost }
    return last
  }
}
