import type { SqlValue } from '../../../core/store/statement.ts'
import { columnsOf, keyOf, type MovedTable, movedTable } from '../../../upkeep/moving/moved-tables.rows.ts'
import type { Cell, StoredRow } from '../../../upkeep/moving/store-move.rules.ts'
import type { StoredTables } from '../../../upkeep/moving/store-moves.rows.ts'
import { escapeNul } from '../nul-escape.ts'
import type { MoveClient } from './postgres-move-client.ts'

const ARRAYS = { number: 'bigint[]', text: 'text[]', bytes: 'bytea[]' } as const

export function createStoredTables({ query, transaction }: MoveClient): StoredTables {
  const read = async (table: MovedTable, text: string, values: readonly SqlValue[]) => {
    const { rows } = await transaction({}, () => query<Readonly<Record<string, Cell>>>(text, values))
    return rows.map((row): StoredRow => table.columns.map(({ name }) => row[name] ?? null))
  }
  return {
    async page(copied, { after, upTo, limit }) {
      const table = movedTable(copied)
      const names = keyOf(table).map(({ name }) => name)
      const values: SqlValue[] = [limit, ...(after ?? []), ...(upTo ?? [])].map(escaped)
      const parameters = (from: number) => `(${names.map((_, at) => `$${from + at}`).join(', ')})`
      const conditions = [
        'true',
        ...(after === null ? [] : [`(${names.join(', ')}) > ${parameters(2)}`]),
        ...(upTo === null ? [] : [`(${names.join(', ')}) <= ${parameters(2 + (after?.length ?? 0))}`]),
      ].join(' and ')
      const text = `select ${columnsOf(table)} from ${table.name} where ${conditions} order by ${names.join(', ')} limit $1`
      return await read(table, text, values)
    },
    async find(copied, keys) {
      if (keys.length === 0) return []
      const table = movedTable(copied)
      const { text, values } = keySet(table, keys)
      return await read(
        table,
        `select ${columnsOf(table, 'stored.')} from ${table.name} as stored join ${text} on ${matchesKey(table)}`,
        values,
      )
    },
  }
}

/** Makes a table `k` of keys for a statement, with one array parameter for each column. */
export function keySet(table: MovedTable, keys: readonly StoredRow[]): { readonly text: string; readonly values: readonly SqlValue[] } {
  return rowSet(keyOf(table), keys, 'k')
}

export function matchesKey(table: MovedTable): string {
  return keyOf(table)
    .map(({ name }) => `stored.${name} = k.${name}`)
    .join(' and ')
}

/** Makes a table of rows for a statement, with one array parameter for each column. `name`: its name in the statement. */
export function rowSet(columns: MovedTable['columns'], rows: readonly StoredRow[], name: string) {
  const arrays = columns.map(({ kind }, at) => `$${at + 1}::${ARRAYS[kind]}`)
  return {
    text: `unnest(${arrays.join(', ')}) as ${name} (${columns.map((column) => column.name).join(', ')})`,
    values: columns.map((_, at) => rows.map((row) => escaped(row[at] ?? null))),
  }
}

function escaped<Value>(value: Value): Value | string {
  return typeof value === 'string' ? escapeNul(value) : value
}
