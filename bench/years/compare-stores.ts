import Database from 'better-sqlite3'

/** The tables with data of users. The others record what the relay itself does, which continues after a restore. */
const COMPARED = [
  'parcel',
  'identifier',
  'content',
  'sighting',
  'answer',
  'language_asked',
  'inbox',
  'feed',
  'composed_event',
  'delivery',
  'attempt',
] as const

/** A restore makes every parcel due, and the polls of the dead carrier fail. Both change only these columns of a parcel. */
const POLLING = new Set(['next_poll_at_ms', 'stopped', 'checked_at_ms', 'failures'])

export interface StoresDiffer {
  readonly table: string
  /** Rows of the backup that are missing or different in the restored store. */
  readonly lost: number
  /** Rows of the restored store that the backup does not have. */
  readonly added: number
}

/**
 * Compares a restored store with its closed backup, row by row and value by value. Ignores the rows of a parcel that was erased after the
 * backup, and later events in the feed. Returns the tables that differ.
 */
export function compareStores(restored: string, backup: string, erasedParcelId: number): readonly StoresDiffer[] {
  const db = new Database(restored, { readonly: true, fileMustExist: true })
  try {
    db.prepare('ATTACH ? AS kept').run(backup)
    const lastSequence = numberOf(db, 'SELECT max(sequence) FROM kept.feed')
    const found = COMPARED.map((table) => {
      const columns = columnsOf(db, table)
      const of = (alias: string) => withoutErased(columns, alias, erasedParcelId)
      const kept = numberOf(db, `SELECT count(*) FROM kept.${table} AS k WHERE ${of('k')}`)
      const upTo = table === 'feed' ? ` AND r.sequence <= ${lastSequence}` : ''
      const now = numberOf(db, `SELECT count(*) FROM main.${table} AS r WHERE ${of('r')}${upTo}`)
      const same = numberOf(
        db,
        `SELECT count(*) FROM kept.${table} AS k CROSS JOIN main.${table} AS r ON ${columns.map(sameIn).join(' AND ')} WHERE ${of('k')}`,
      )
      return { table, lost: kept - same, added: now - same }
    })
    return found.filter(({ lost, added }) => lost !== 0 || added !== 0)
  } finally {
    db.close()
  }
}

/** Returns the relay's own id of a parcel. */
export function parcelIdIn(storePath: string, identifier: string): number {
  const db = new Database(storePath, { readonly: true, fileMustExist: true })
  try {
    return db.prepare<[string], number>('SELECT parcel_id FROM identifier WHERE value = ?').pluck().get(identifier) ?? fail(identifier)
  } finally {
    db.close()
  }
}

/** Counts the rows of a parcel in a store, except the event in the feed that reports its erasure. */
export function rowsOfParcel(storePath: string, parcelId: number): number {
  const db = new Database(storePath, { readonly: true, fileMustExist: true })
  try {
    const counts = COMPARED.filter((table) => table !== 'feed').map((table) => {
      const owner = ownerIn(columnsOf(db, table))
      return owner === null ? 0 : numberOf(db, `SELECT count(*) FROM ${table} WHERE ${owner} = ${parcelId}`)
    })
    return counts.reduce((sum, count) => sum + count, 0)
  } finally {
    db.close()
  }
}

interface Column {
  readonly table: string
  readonly name: string
  readonly isKey: boolean
}

function columnsOf(db: Database.Database, table: string): readonly Column[] {
  const rows = db.prepare<[], { readonly name: string; readonly pk: number }>(`PRAGMA table_info(${table})`).all()
  return rows.filter(({ name }) => table !== 'parcel' || !POLLING.has(name)).map(({ name, pk }) => ({ table, name, isKey: pk > 0 }))
}

/** Compares keys by `=`, so that the index of the key is used. Other values may be null. */
function sameIn({ name, isKey }: Column): string {
  return `r.${name} ${isKey ? '=' : 'IS'} k.${name}`
}

/** Returns the column with the parcel to which a row belongs, or null if there is none. */
function ownerIn(columns: readonly Column[]): string | null {
  if (columns.some(({ table }) => table === 'parcel')) return 'id'
  return columns.some(({ name }) => name === 'parcel_id') ? 'parcel_id' : null
}

function withoutErased(columns: readonly Column[], alias: string, parcelId: number): string {
  const owner = ownerIn(columns)
  return owner === null ? 'TRUE' : `${alias}.${owner} <> ${parcelId}`
}

function numberOf(db: Database.Database, sql: string): number {
  return Number(db.prepare(sql).pluck().get() ?? 0)
}

function fail(identifier: string): never {
  throw new Error(`the store knows no parcel ${identifier}`)
}
