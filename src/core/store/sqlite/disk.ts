import { statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { createIdentityCheck, identityOf, type LostFile, statIfThere } from './file.ts'

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
