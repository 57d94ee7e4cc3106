import { CHANGES_COUNTED, keyOf, MOVED_TABLES, type MovedTable, movedTable } from '../../../upkeep/moving/moved-tables.rows.ts'
import type { Cell } from '../../../upkeep/moving/store-move.rules.ts'
import type { MoveSide, MoveSource } from '../../../upkeep/moving/store-moves.rows.ts'
import type { MoveClient } from './postgres-move-client.ts'
import { changesOf, dropChanges } from './postgres-move-mark.ts'

/**
 * Reads the keys of changed rows in order, each time from where the last read stopped. A read from the start would have to step over all
 * deleted keys that an open transaction may still see. But a change with a lower number may be committed late. So a read that finds nothing
 * begins at the start once more.
 */
export function createKeptChanges(client: MoveClient, side: MoveSide): Pick<MoveSource, 'changes' | 'forget' | 'countChanges'> {
  const { query } = client
  const read = new Map<MovedTable, number>()

  async function next(table: MovedTable, limit: number) {
    const names = keyOf(table).map(({ name }) => name)
    const { rows } = await query<Record<string, Cell>>(
      `select seq, ${names.join(', ')} from ${changesOf(table)} where seq > $2 order by seq limit $1`,
      [limit, read.get(table) ?? 0],
    )
    return { marks: rows.map(({ seq }) => Number(seq)), keys: rows.map((row) => names.map((name) => row[name] ?? null)) }
  }

  return {
    async changes(copied, limit) {
      const table = movedTable(copied)
      const found = await next(table, limit)
      if (found.marks.length > 0 || !read.has(table)) return found
      read.delete(table)
      return await next(table, limit)
    },
    async forget(copied, marks) {
      const table = movedTable(copied)
      await dropChanges(client, table, marks, side)
      read.set(table, marks.at(-1) ?? 0)
    },
    async countChanges() {
      const countOf = (table: MovedTable) =>
        `(select count(*) from (select 1 from ${changesOf(table)} where seq > ${read.get(table) ?? 0} order by seq limit ${CHANGES_COUNTED}) as kept)`
      const { rows } = await query<{ n: number }>(`select ${MOVED_TABLES.map(countOf).join(' + ')} as n`)
      return Number(rows[0]?.n ?? 0)
    },
  }
}
