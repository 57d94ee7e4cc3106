import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'

/** How much room the disk of a store has left for this user, and how large the log of changes beside the database is. */
export async function measureDisk(path: string): Promise<{ readonly freeBytes: number; readonly logBytes: number }> {
  const { bavail, bsize } = await statfs(dirname(path))
  // There is no log before the first change and after a clean stop.
  const log = await stat(`${path}-wal`).catch(() => null)
  return { freeBytes: bavail * bsize, logBytes: log?.size ?? 0 }
}
