import Database from 'better-sqlite3'
import { expect, onTestFinished } from 'vitest'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import type { Place } from './moving.ts'
import { openTestPool } from './postgres-pool.ts'

/** Writes rows while a relay runs. Returns false if it would have to wait. */
export type Writer = (rows: number) => Promise<boolean>

const ROWS = {
  sqlite: `with recursive n (i) as (select 1 union all select i + 1 from n where i < ?)
    insert into setting (name, value) select 'flood-' || i, randomblob(8) from n where true on conflict (name) do update set value = excluded.value`,
  postgres: `insert into setting (name, value) select 'flood-' || i, decode(md5(random()::text), 'hex') from generate_series(1, $1) as i
    on conflict (name) do update set value = excluded.value`,
}

export function writerOf({ engine, place }: Place): Writer {
  if (engine.name === postgres.name) {
    const pool = openTestPool(place)
    return async (rows) => {
      const client = await pool.connect()
      try {
        await client.query("begin; set local lock_timeout = 5; select from counter where name = 'sequence' for update")
        await client.query(ROWS.postgres, [rows])
        await client.query('commit')
        return true
      } catch (error) {
        await client.query('rollback')
        expect(error).toMatchObject({ code: '55P03' })
        return false
      } finally {
        client.release()
      }
    }
  }
  const db = new Database(place, { timeout: 0 })
  onTestFinished(() => void db.close())
  const write = db.prepare(ROWS.sqlite)
  return async (rows) => {
    try {
      write.run(rows)
      return true
    } catch (error) {
      expect(error).toMatchObject({ code: 'SQLITE_BUSY' })
      return false
    }
  }
}
