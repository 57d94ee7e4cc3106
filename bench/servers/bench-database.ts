import pg from 'pg'
import type { PostgresServer } from '../../src/trial/demo/postgres/throwaway-server.ts'

/** Typical settings of a small dedicated server. */
export const SETTINGS = { shared_buffers: '512MB', max_wal_size: '4GB' }

/** Runs `work` on a new database and drops it afterwards. */
export async function onDatabase<T>(server: PostgresServer, work: (url: string) => Promise<T>): Promise<T> {
  const name = `bench_${Math.random().toString(36).slice(2)}`
  const admin = new pg.Client({ connectionString: server.url() })
  await admin.connect()
  try {
    await admin.query(`create database ${name}`)
    return await work(server.url(name))
  } finally {
    await admin.query(`drop database ${name} with (force)`)
    await admin.end()
  }
}
