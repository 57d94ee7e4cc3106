import type Database from 'better-sqlite3'
import { columnsOf, keyOf, type MovedTable, movedTable, SETTING_OF_SEQUENCE } from './moved-tables.rows.ts'
import type { Cell, StoredRow } from './store-move.rules.ts'
import type { StoredTables } from './store-moves.rows.ts'

export function createStoredTables(db: Database.Database): StoredTables {
  const prepare = createPreparer(db)
  return {
    async page(copied, { after, upTo, limit }) {
      const table = movedTable(copied)
      const names = keyOf(table).map(({ name }) => name)
      const parameters = `(${names.map(() => '?').join(', ')})`
      const conditions = [
        movedRowsOf(table),
        ...(after === null ? [] : [`(${names.join(', ')}) > ${parameters}`]),
        ...(upTo === null ? [] : [`(${names.join(', ')}) <= ${parameters}`]),
      ].join(' and ')
      const query = `select ${columnsOf(table)} from ${table.name} where ${conditions} order by ${names.join(', ')} limit ?`
      const rows = prepare(query).all(...(after ?? []), ...(upTo ?? []), limit)
      return rows.map((row) => canonical(table, row))
    },
    async find(copied, keys) {
      const table = movedTable(copied)
      const query = prepare(`select ${columnsOf(table)} from ${table.name} where ${movedRowsOf(table)} and ${matchesKey(table)}`)
      // Read all rows in one snapshot. Otherwise, if a unique key moves from one row to another between two reads, both rows would have it.
      const find = db.transaction(() => keys.flatMap((key) => query.all(...key)))
      return find().map((row) => canonical(table, row))
    },
  }
}

/** Makes a function that prepares each statement once. The statements return rows as lists of values. */
export function createPreparer(db: Database.Database) {
  const prepared = new Map<string, Database.Statement<Cell[], Cell[]>>()
  return (query: string): Database.Statement<Cell[], Cell[]> => {
    const known = prepared.get(query) ?? db.prepare<Cell[], Cell[]>(query)
    if (!prepared.has(query)) prepared.set(query, known.reader ? known.raw() : known)
    return known
  }
}

/** Returns the condition for the rows that a move copies. SQLite stores the last sequence as a setting, but a move copies it as a number. */
export function movedRowsOf({ name }: MovedTable): string {
  return name === 'setting' ? `name <> '${SETTING_OF_SEQUENCE}'` : 'true'
}

export function matchesKey(table: MovedTable): string {
  return keyOf(table)
    .map(({ name }) => `${name} = ?`)
    .join(' and ')
}

/**
 * Turns the values of a row into values that every engine can store. SQLite accepts any value that somebody writes by hand, such as a
 * fraction of a millisecond, or a text instead of bytes.
 */
function canonical({ columns }: MovedTable, row: readonly Cell[]): StoredRow {
  return row.map((cell, at) => {
    if (typeof cell === 'number') return Math.round(cell)
    return typeof cell === 'string' && columns[at]?.kind === 'bytes' ? Buffer.from(cell) : cell
  })
}
