import { setTimeout } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { counted } from '../../core/domain/amounts.ts'
import type { StorageState } from '../../core/domain/history/erased.ts'
import type { ErasedWords } from '../../core/store/engine.ts'
import type { Cleaner, CleanerPorts } from '../../core/store/sqlite/sqlite.ts'
import { tombstoneFileOf } from '../../core/store/sqlite/tombstone-file.ts'
import { isThere } from '../../regular-file.ts'
import { storesLeftBeside } from '../moving/sqlite-move-mark.ts'

/**
 * The `user_version` of a file says whether the file may still hold erased data. `unsearched`: something was erased since the last search; a
 * file without a mark counts as this. `leftovers`: a search has found erased words.
 */
const MARK = { searched: 1, leftovers: 2, unsearched: 3 } as const

/** How long to wait for readers of the WAL. The wait blocks the writer. */
const PATIENCE_MS = 50
const RETRY_MS = 1000
/** The most erased words to remember. If there are more, none is remembered, and only a compaction makes sure that nothing is left. */
const WORDS_MAX = 500_000

function markOf(db: Database.Database): number {
  return Number(db.pragma('user_version', { simple: true })) || MARK.unsearched
}

export function overwriteDeleted(db: Database.Database, isNew: boolean): void {
  db.pragma('secure_delete = ON')
  if (isNew) db.pragma(`user_version = ${MARK.searched}`)
}

/** Notes in a new copy of a store that the copy contains no deleted data. */
export function noteOverwritten(path: string): void {
  const db = new Database(path, { fileMustExist: true })
  try {
    db.pragma(`user_version = ${MARK.searched}`)
  } finally {
    db.close()
  }
}

/** Says without a search whether the file of a store, or what was left beside it, may still hold erased data. */
export function readStorageState(path: string): StorageState {
  const db = new Database(path, { readonly: true, fileMustExist: true })
  try {
    const state = storageStateIn(db)
    const left = state.state === 'clean' && isThere(tombstoneFileOf(path)) ? storesLeftBeside(path) : []
    return left.length === 0
      ? state
      : pending(`What a restore or a killed command has left may hold what was erased. Delete it: ${left.join(', ')}.`)
  } finally {
    db.close()
  }
}

export function storageStateIn(db: Database.Database): StorageState {
  const mark = markOf(db)
  if (mark === MARK.leftovers) return leftoversState(null)
  return mark === MARK.unsearched ? NOT_TO_THE_END : CLEAN
}

interface SearchingCleanerPorts extends Omit<CleanerPorts, 'open'> {
  readonly searching: FileSearch
  /** Resolves when a caller has waited long enough for a search. The caller then gets `UNSEARCHED`. */
  readonly patience: () => Promise<unknown>
}

/** How long an erasure waits for the search of the file for erased data. After that it answers `pending`, and the search goes on. */
const SEARCH_PATIENCE_MS = 2000

export function openCleaner(db: Database.Database, { open, ...ports }: CleanerPorts): Cleaner {
  const patience = () => setTimeout(SEARCH_PATIENCE_MS, undefined, { ref: false })
  return createCleaner(db, { ...ports, searching: createFileSearch(open), patience })
}

/**
 * Removes erased data from the store's files. First, truncates the WAL by a checkpoint; while a reader needs the WAL, tries again every second.
 * Then searches the database file for erased words. All callers that ask before a search begins get its result. `close` waits until the current search
 * ends or `patience` resolves, and then ends the search.
 */
export function createCleaner(db: Database.Database, { inTurn, searching, patience, busyTimeoutMs }: SearchingCleanerPorts) {
  const words = rememberWords(markOf(db) === MARK.unsearched)
  let leftovers: number | null = null
  let retry: NodeJS.Timeout | null = null
  let last: Promise<unknown> = Promise.resolve()
  /** The round that waits for the current one to end; null: no round waits. */
  let next: Promise<StorageState> | null = null

  function truncate(): boolean {
    db.pragma(`busy_timeout = ${PATIENCE_MS}`)
    try {
      // The driver does not know the row type of a pragma.
      const [row] = db.pragma('wal_checkpoint(TRUNCATE)') as readonly { readonly busy: number }[]
      return row?.busy === 0
    } finally {
      db.pragma(`busy_timeout = ${busyTimeoutMs}`)
    }
  }

  function stop(): void {
    if (retry !== null) clearInterval(retry)
    retry = null
  }

  async function look(): Promise<StorageState> {
    // Take the words in the turn of the checkpoint. Rows that are erased after the checkpoint stay in the file until the next one.
    const taken = await inTurn(async () => (truncate() ? words.take() : null))
    if (taken === null) {
      retry ??= setInterval(() => void round().catch(() => undefined), RETRY_MS)
      retry.unref()
      return HELD
    }
    stop()
    const mark = markOf(db)
    if (mark === MARK.leftovers) return leftoversState(leftovers)
    if (words.areLost()) return LOST
    try {
      const found = taken.count === 0 ? 0 : await searching.search(taken)
      return await inTurn(async () => conclude(found))
    } catch (error) {
      words.putBack(taken)
      return unsearchedBecause(error)
    }
  }

  function conclude(found: number): StorageState {
    if (found > 0) {
      db.pragma(`user_version = ${MARK.leftovers}`)
      leftovers = found
      return leftoversState(found)
    }
    // If something was erased during the search, the file stays unsearched.
    if (words.areAllTaken() && markOf(db) === MARK.unsearched) db.pragma(`user_version = ${MARK.searched}`)
    return CLEAN
  }

  function round(): Promise<StorageState> {
    if (next !== null) return next
    const begun = last.then(() => {
      next = null
      return look()
    })
    last = begun.catch(() => undefined)
    next = begun
    return begun
  }

  return {
    /** See `WriteEngine.noteErased`. */
    noteErased(erased: ErasedWords) {
      words.note(erased)
      if (markOf(db) === MARK.searched) db.pragma(`user_version = ${MARK.unsearched}`)
    },
    /** Call these at the end of each transaction, before the next one begins. */
    committed: words.committed,
    rolledBack: words.rolledBack,
    clean: (): Promise<StorageState> => Promise.race([round(), patience().then(() => UNSEARCHED)]),
    /** Waits until the current search ends or `patience` resolves, and then ends the search. */
    async close() {
      stop()
      await Promise.race([last, patience()])
      await searching.close()
    },
  }
}

/**
 * Remembers erased words until they are searched for. `areLost`: some words were forgotten before a search, for example because the process
 * ended.
 */
function rememberWords(wereLost: boolean) {
  const none = () => ({ identifiers: new Set<string>(), texts: new Set<string>() })
  let areLost = wereLost
  let uncommitted = none()
  let due = none()
  const countOf = ({ identifiers, texts }: typeof due) => identifiers.size + texts.size
  const add = (to: typeof due, { identifiers, texts }: ErasedWords) => {
    for (const word of identifiers) to.identifiers.add(word)
    for (const word of texts) to.texts.add(word)
  }
  const addDue = (words: ErasedWords) => {
    add(due, words)
    if (countOf(due) <= WORDS_MAX) return
    due = none()
    areLost = true
  }
  return {
    note: (words: ErasedWords) => add(uncommitted, words),
    committed() {
      if (countOf(uncommitted) === 0) return
      addDue(uncommitted)
      uncommitted = none()
    },
    rolledBack() {
      if (countOf(uncommitted) > 0) uncommitted = none()
    },
    take() {
      const taken = { ...due, count: countOf(due) }
      due = none()
      return taken
    },
    putBack: addDue,
    areAllTaken: () => countOf(due) === 0,
    areLost: () => areLost,
  }
}

const CLEAN: StorageState = { state: 'clean' }
const pending = (because: string): StorageState => ({ state: 'pending', because })

const CURE = 'Stop the relay and run "parcel-relay prune --compact".'
const HELD = pending(
  'A reader still uses the WAL of the store, which contains deleted rows. The relay truncates the WAL as soon as the reader ends.',
)
const UNSEARCHED = pending(
  'The file of the store is still being searched for what was erased. Erase the same again to get the result, or see the line "erasure" of "parcel-relay check".',
)
const NOT_TO_THE_END = pending(
  `Something was erased, and the search of the store’s file for it has not ended. A running relay ends it soon. If this message does not go away, erased data may be left in unused parts of pages. ${CURE}`,
)
const LOST = pending(
  `The relay ended before it had searched the file of the store for everything that was erased, so leftovers may be in unused parts of pages. ${CURE}`,
)

/** @param count the number of leftovers; null: another process has found them */
function leftoversState(count: number | null): StorageState {
  const found = count === null ? 'Leftovers' : counted(count, 'leftover', 'leftovers')
  return pending(`${found} of what was erased stayed in unused parts of pages, from which SQLite has moved entries. ${CURE}`)
}

function unsearchedBecause(error: unknown): StorageState {
  const reason = error instanceof Error ? error.message : String(error)
  return pending(`The file of the store could not be searched for what was erased: ${reason}. Erase the same again to search it.`)
}

/** The thread's `workerData`. */
export interface SearchData {
  /** A file descriptor of the database. */
  readonly file: number
  readonly identifiers: readonly string[]
  readonly texts: readonly string[]
}

export interface SearchResult {
  readonly leftovers: number
}

type FileSearch = ReturnType<typeof createFileSearch>

/** Searches the file of a store on a thread of low priority, which lives as long as the search. `open`: see `keepOpen`. */
export function createFileSearch(open: () => number | null) {
  let thread: Worker | null = null
  return {
    /** Counts the occurrences of erased words in unused parts of the file. Rejects if the file cannot be read. */
    search: ({ identifiers, texts }: ErasedWords) =>
      new Promise<number>((resolve, reject) => {
        const file = open()
        if (file === null) throw new Error('it could not be opened')
        // Uses this file's own extension: `.ts` in development, `.js` when compiled.
        const worker = new Worker(new URL(`./search-thread${import.meta.url.slice(-3)}`, import.meta.url), {
          name: 'search',
          workerData: { file, identifiers: [...identifiers], texts: [...texts] } satisfies SearchData,
          resourceLimits: { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 128 },
        })
        thread = worker
        worker.on('message', ({ leftovers }: SearchResult) => resolve(leftovers))
        worker.on('error', reject)
        worker.on('exit', () => {
          thread = null
          reject(new Error('the search was ended'))
        })
        worker.unref()
      }),
    /** Ends the search that is under way, which then rejects. */
    close: async () => void (await thread?.terminate()),
  }
}
