import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler, sql } from 'kysely'
import type { Engine } from '../contract.ts'
import type { Session, StoreCopier, TombstoneKeeping, WriteEngine } from '../engine.ts'
import { createContents } from '../history/contents.ts'
import { storedTombstones } from '../history/tombstones.ts'
import { createReadStore, type ReadEngine } from '../read-store.ts'
import { loadNumber, SEQUENCE } from '../settings.ts'
import { type Dialect, type Params, Placeholder, readParameter, type SqlList, type SqlValue, type Statement } from '../statement.ts'
import type { Tables } from '../tables.ts'
import { createCheckpointer } from './checkpointer.ts'
import { keepOpen, leaveMarker, makeFolder, openingFailure, refuseDamage, rewriteLog } from './file.ts'
import { type HeldStore, holdStore, StoreInUse, type StoreLock } from './lock.ts'
import { migrate } from './migrate.ts'
import { createSqliteWriteStore } from './sqlite-write-store.ts'
import { openTombstoneFile } from './tombstone-file.ts'
import { makeFile } from './whole-file.ts'

/** How long a reader waits for another connection's lock. The wait blocks the thread. */
const BUSY_TIMEOUT_MS = 100
/** How long the writer waits for a lock. A move may hold the lock for up to half of this time. */
const WRITER_BUSY_TIMEOUT_MS = 500
/** After a checkpoint SQLite truncates the WAL to this size. Without a limit the WAL would never shrink. */
const JOURNAL_BYTES_MAX = 128 * 1024 * 1024
/** If the checkpoint thread falls behind and the WAL has this many pages, SQLite itself makes a checkpoint at a commit. */
const CHECKPOINT_PAGES = 64_000
/** At every commit SQLite goes through all cached pages, so a larger cache slows the writer. */
const WRITER_CACHE_KIB = 16 * 1024
const READER_CACHE_KIB = 64 * 1024

/** What the engine calls for the wings that restore, erase, move and back up a store. */
export interface SqliteHooks {
  /** Throws if no relay may open the file at `path` now. */
  readonly refuseFile: (path: string) => void
  /** Prepares a connection that will write, before it writes anything. */
  readonly prepare: (db: Database.Database, isNew: boolean) => void
  /** Throws if no relay may use the opened store. */
  readonly refuseStore: (db: Database.Database, path: string) => void
  readonly openCleaner: (db: Database.Database, ports: CleanerPorts) => Cleaner
  readonly openCopier: (db: Database.Database) => StoreCopier
}

export interface CleanerPorts {
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>
  /** Returns a descriptor of the database file; see `keepOpen`. */
  readonly open: () => number | null
  /** How long the connection waits for a lock, except in a checkpoint of the cleaner. */
  readonly busyTimeoutMs: number
}

/** Removes from the files of the store what transactions have erased. */
export interface Cleaner extends Pick<WriteEngine, 'noteErased' | 'clean' | 'close'> {
  /** Call these at the end of each transaction, before the next one begins. */
  committed(): void
  rolledBack(): void
}

/**
 * Opens the database file for its only writer. Creates or migrates the file if necessary. If another relay uses the file, or the file is damaged
 * or lost, rejects and changes nothing. The error names the path and the remedy.
 */
export async function openSqliteWriter(given: string, hooks: SqliteHooks): Promise<SqliteWriteEngine> {
  const { path, db, lock } = await openOwn(given, hooks)
  try {
    hooks.refuseStore(db, path)
    return engineOf(db, { hooks, lock, path, tombstones: openTombstoneFile(path, await storedTombstones(createSession(db))) })
  } catch (error) {
    db.close()
    lock.release()
    throw error
  }
}

interface SqliteWriteEngine extends WriteEngine {
  readonly copier: StoreCopier
}

interface OwnStore extends HeldStore {
  readonly db: Database.Database
}

/** Like `openSqliteWriter`, but returns the plain connection, and also opens a store that a move is filling. */
export async function openOwn(given: string, { refuseFile, prepare }: Pick<SqliteHooks, 'refuseFile' | 'prepare'>): Promise<OwnStore> {
  const { path, lock } = holdStore(given, (file) => {
    makeFolder(dirname(file))
    refuseFile(file)
  })
  try {
    return { path, db: await openChecked(path, prepare), lock }
  } catch (error) {
    lock.release()
    throw openingFailure(path, error)
  }
}

async function openChecked(path: string, prepare: SqliteHooks['prepare']): Promise<Database.Database> {
  refuseDamage(path)
  makeFile(path)
  const db = new Database(path, { timeout: WRITER_BUSY_TIMEOUT_MS })
  try {
    prepare(db, db.pragma('page_count', { simple: true }) === 0)
    // In WAL mode the driver's default is NORMAL, which loses acknowledged rows when the power fails. FULL syncs each commit.
    db.pragma('journal_mode = WAL')
    db.pragma('synchronous = FULL')
    db.pragma('foreign_keys = ON')
    db.pragma(`journal_size_limit = ${JOURNAL_BYTES_MAX}`)
    db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
    db.pragma(`cache_size = -${WRITER_CACHE_KIB}`)
    db.transaction(() => rewriteLog(path)).immediate()
    await migrate(db)
    leaveMarker(path)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

interface OpenParts extends Omit<OwnStore, 'db'> {
  readonly hooks: SqliteHooks
  readonly tombstones: TombstoneKeeping
}

function engineOf(db: Database.Database, { hooks, lock, path, tombstones }: OpenParts): SqliteWriteEngine {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const readVersion = db.prepare('PRAGMA data_version').pluck()
  const logState = db.prepare('PRAGMA wal_checkpoint(NOOP)')
  const inTurn = createTurns()
  const open = keepOpen(path)
  const carrying = createCheckpointer({
    path,
    open,
    log() {
      try {
        // The driver does not know the row type of a pragma.
        const { log, checkpointed } = logState.get() as { readonly log: number; readonly checkpointed: number }
        return { pages: log, carried: checkpointed }
      } catch {
        // A failed read must not fail a transaction that is already committed.
        return { pages: 0, carried: 0 }
      }
    },
    finish: () => inTurn(async () => void db.pragma('wal_checkpoint(PASSIVE)')),
  })
  const unwatchLock = watchLock(lock)
  const cleaner = hooks.openCleaner(db, { inTurn, open, busyTimeoutMs: WRITER_BUSY_TIMEOUT_MS })
  let version = readVersion.get()

  return {
    session: createSession(db),
    copier: hooks.openCopier(db),
    changedElsewhere() {
      const before = version
      version = readVersion.get()
      return version !== before
    },
    transaction: (work) =>
      inTurn(async () => {
        try {
          const result = await bracket(db, begin, commit, work)
          cleaner.committed()
          carrying.look()
          return result
        } finally {
          cleaner.rolledBack()
        }
      }),
    isStorageFailure: (error) => error instanceof Database.SqliteError && !error.code.startsWith('SQLITE_CONSTRAINT'),
    noteErased: cleaner.noteErased,
    clean: cleaner.clean,
    tombstones,
    async close() {
      await cleaner.close()
      await carrying.close()
      unwatchLock()
      await inTurn(async () => void db.close())
      lock.release()
    },
  }
}

const LOCK_LOOK_MS = 250

/**
 * Regularly locks the lock file again if it was deleted or replaced. If another relay has locked the new file, throws an error that ends the
 * process, so that this relay writes nothing more.
 */
function watchLock(lock: StoreLock): () => void {
  let isLooking = false
  const look = async () => {
    if (isLooking) return
    isLooking = true
    const failure: unknown = await lock.renew().catch((error: unknown) => error)
    isLooking = false
    // Any other failure, such as a full disk, may be over at the next check.
    if (failure instanceof StoreInUse) {
      setImmediate(() => {
        throw failure
      })
    }
  }
  const timer = setInterval(() => void look(), LOCK_LOOK_MS)
  timer.unref()
  return () => clearInterval(timer)
}

/** Makes a queue for transactions, because a connection can run only one at a time. */
function createTurns(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const turn = last.then(work)
    last = turn.catch(() => undefined)
    return turn
  }
}

async function bracket<T>(db: Database.Database, begin: Database.Statement, end: Database.Statement, work: () => Promise<T>): Promise<T> {
  begin.run()
  try {
    const result = await work()
    end.run()
    return result
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK')
    throw error
  }
}

export function openSqliteReader(path: string): ReadEngine {
  const db = new Database(path, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
  db.pragma(`cache_size = -${READER_CACHE_KIB}`)
  const begin = db.prepare('BEGIN')
  const end = db.prepare('COMMIT')
  const inTurn = createTurns()
  const session = createSession(db)
  const contents = createContents(session)
  return {
    session,
    contents: () => contents,
    snapshot: (work) => inTurn(() => bracket(db, begin, end, () => work(session))),
    lastSequence: (of) => loadNumber(of, SEQUENCE),
    close: () => inTurn(async () => void db.close()),
  }
}

/** The session compiles and prepares each statement only once: each of the two takes five times as long as running the statement. */
export function createSession(db: Database.Database): Session {
  const prepared: { readonly run: Database.Statement<unknown[], unknown>; readonly compiled: SqliteStatement }[] = []
  function prepare(statement: Statement<never, unknown>) {
    const known = prepared[statement.id]
    if (known !== undefined) return known
    const compiled = compileForSqlite(statement)
    const made = { run: db.prepare<unknown[], unknown>(compiled.sql), compiled }
    prepared[statement.id] = made
    return made
  }
  return {
    async all<P extends Params, R>(statement: Statement<P, R>, params: P) {
      const { run, compiled } = prepare(statement)
      // The driver does not know the row type; the statement declares it.
      return run.all(...bind(compiled, params)) as R[]
    },
    async run(statement, params) {
      const { run, compiled } = prepare(statement)
      return { rows: run.run(...bind(compiled, params)).changes }
    },
    enqueueWrite(statement, params) {
      const { run, compiled } = prepare(statement)
      run.run(...bind(compiled, params))
    },
  }
}

const sqliteDialect: Dialect = {
  builder: new Kysely<Tables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  }),
  // Lists are bound as JSON, so one statement takes lists of any length.
  oneOf: (list) => sql`(select value from json_each(${list}))`,
  oneOfTexts: (list) => sql`(select value from json_each(${list}))`,
  anyEndpoint: sql`(select endpoint.id from endpoint)`,
  rowsOf: (list) => sql`json_each(${list})`,
  least: (one, other) => sql`min(${one}, ${other})`,
  greatest: (one, other) => sql`max(${one}, ${other})`,
  joined: (column) => sql`group_concat(${column})`,
  summed: (one, other, how) =>
    sql`(select json_group_object(key, total) from (select key, ${sql.raw(how)}(value) as total from (select key, value from json_each(${one}) union all select key, value from json_each(${other})) group by key))`,
  hex: (column) => sql`lower(hex(${column}))`,
  containsAny: (column, texts) => sql`exists (select 1 from json_each(${texts}) where instr(${column}, cast(json_each.value as blob)) > 0)`,
  unindexed: (column) => sql`+${column}`,
  parcelVersion: sql`0`,
  integer: (value) => sql`${value}`,
}

type Parameter = ReturnType<typeof readParameter>

interface SqliteStatement {
  readonly sql: string
  readonly parameters: readonly Parameter[]
}

/**
 * Compiles a statement so that SQLite plans it only once. If a plan depends on a bound value, SQLite plans again at each run, which takes
 * several times as long as the run. A plan depends on a bound value if a partial index may apply (`state = ?`), or if the statement
 * has ORDER BY. So constants are written into the SQL, and each parameter gets a unary plus, which hides its value from the planner.
 */
export function compileForSqlite(statement: Statement<never, unknown>): SqliteStatement {
  const { sql: text, parameters: given } = statement.compile(sqliteDialect)
  const parameters = given.map(readParameter)
  // Strings are parameters too, so every question mark in the SQL is a placeholder.
  const [start = '', ...pieces] = text.split('?')
  if (pieces.length !== parameters.length) throw new TypeError(`a question mark in the SQL is not a placeholder: ${text}`)
  const written = pieces.map((piece, at) => `${typeof parameters[at] === 'number' ? parameters[at] : '+?'}${piece}`)
  return { sql: start + written.join(''), parameters: parameters.filter((parameter) => typeof parameter !== 'number') }
}

export function bind({ parameters }: SqliteStatement, params: Params): Exclude<SqlValue, SqlList>[] {
  return parameters.map((parameter) => (parameter instanceof Placeholder ? bound(params[parameter.name] ?? null) : parameter))
}

function bound(value: SqlValue): Exclude<SqlValue, SqlList> {
  return isList(value) ? JSON.stringify(value) : value
}

function isList(value: SqlValue): value is SqlList {
  return Array.isArray(value)
}

/** Makes the SQLite engine. An address is the path of the database file. */
export function createSqlite(hooks: SqliteHooks): Engine {
  return {
    name: 'sqlite',
    async openWriteStore(address) {
      const engine = await openSqliteWriter(address, hooks)
      return { ...createSqliteWriteStore(engine), copier: engine.copier, close: () => engine.close() }
    },
    openReadStore: (address) => createReadStore(openSqliteReader(address)),
  }
}
