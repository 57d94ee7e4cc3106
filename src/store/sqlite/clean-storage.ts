import Database from 'better-sqlite3'
import type { StorageState } from '../../domain/admin/erasure.ts'

/** The `user_version` of a file in which deleted data was always overwritten. */
const ALWAYS_OVERWRITTEN = 1
/** How long to wait for readers of the WAL, in milliseconds. The wait blocks the writer. */
const PATIENCE_MS = 50
const RETRY_MS = 1000

/** Makes SQLite overwrite whatever is deleted. `isNew`: the file holds nothing yet. */
export function overwriteDeleted(db: Database.Database, isNew: boolean): void {
  db.pragma('secure_delete = ON')
  if (isNew) db.pragma(`user_version = ${ALWAYS_OVERWRITTEN}`)
}

/** Notes in a new copy of a store that it holds nothing deleted. */
export function noteOverwritten(path: string): void {
  const db = new Database(path, { fileMustExist: true })
  try {
    db.pragma(`user_version = ${ALWAYS_OVERWRITTEN}`)
  } finally {
    db.close()
  }
}

export interface Cleaner {
  clean(): Promise<StorageState>
  close(): void
}

/**
 * Removes erased rows from the WAL too: it checkpoints the WAL into the database and truncates it. While a reader holds the WAL, it tries
 * again every second.
 */
export function createCleaner(
  db: Database.Database,
  { inTurn, patienceMs }: { readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>; readonly patienceMs: number },
): Cleaner {
  let retry: NodeJS.Timeout | null = null

  function truncate(): boolean {
    db.pragma(`busy_timeout = ${PATIENCE_MS}`)
    try {
      // The driver does not know the row type of a pragma.
      const [row] = db.pragma('wal_checkpoint(TRUNCATE)') as readonly { readonly busy: number }[]
      return row?.busy === 0
    } finally {
      db.pragma(`busy_timeout = ${patienceMs}`)
    }
  }

  function stop(): void {
    if (retry !== null) clearInterval(retry)
    retry = null
  }

  async function tryAgain(): Promise<void> {
    const isDone = await inTurn(async () => retry === null || truncate()).catch(() => false)
    if (isDone) stop()
  }

  return {
    async clean() {
      const isTruncated = await inTurn(async () => truncate())
      if (!isTruncated) {
        retry ??= setInterval(() => void tryAgain(), RETRY_MS)
        retry.unref()
        return { state: 'pending', because: HELD }
      }
      stop()
      const version = db.pragma('user_version', { simple: true })
      return version === ALWAYS_OVERWRITTEN ? { state: 'clean' } : { state: 'pending', because: OLD }
    },
    close: stop,
  }
}

const HELD = 'A reader holds the WAL of the store, in which deleted rows still are. The relay truncates it as soon as the reader ends.'
const OLD =
  'This store was made by a version that did not overwrite what it deleted. Its free pages may hold old rows until "parcel-relay prune --compact".'
