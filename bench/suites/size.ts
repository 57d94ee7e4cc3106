import { join } from 'node:path'
import pg from 'pg'
import { postgres } from '../../src/server/postgres/postgres-engine.ts'
import { startPostgres } from '../../src/trial/demo/postgres/throwaway-server.ts'
import { sqlite } from '../../src/upkeep/sqlite-engine.ts'
import { figure } from '../figures.ts'
import { EVENTS_PER_PARCEL } from '../load/event.ts'
import { SETTINGS } from '../servers/bench-database.ts'
import { contentsOf } from '../stores/contents.ts'
import { fillStore } from '../stores/prefill.ts'
import type { Bench, Figure, SuiteReport } from '../suite.ts'

const MB = 1024 ** 2
/** The difference between none and one endpoint is the cost of a delivery. */
const ENDPOINTS = [[], ['shop']] as const

/** Measures the disk space of a million events on both engines, with and without a delivery of each. */
export async function size(bench: Bench): Promise<SuiteReport> {
  const { settings, folder, say } = bench
  const filling = { parcels: settings.scale.storedParcels, say }
  const perMillion = 1_000_000 / (filling.parcels * EVENTS_PER_PARCEL)
  const figures: Figure[] = []
  for (const endpoints of ENDPOINTS) {
    const place = join(folder, `size-${endpoints.length}.db`)
    await fillStore({ ...filling, place, engine: sqlite, endpoints })
    const { fileBytes } = contentsOf(place)
    const databaseBytes = await fillDatabase({ ...filling, endpoints })
    const besides = endpoints.length === 0 ? '' : ', and a waiting delivery of each'
    for (const [engine, bytes] of [['SQLite', fileBytes] as const, ['PostgreSQL', databaseBytes] as const])
      figures.push(figure(`size: a million events on ${engine}${besides}`, [(bytes * perMillion) / MB], { unit: 'MB', better: 'lower' }))
  }
  return { figures, observations: [] }
}

/** Returns the size of the database after the server's maintenance. */
async function fillDatabase({
  parcels,
  endpoints,
  say,
}: Pick<Parameters<typeof fillStore>[0], 'parcels' | 'endpoints' | 'say'>): Promise<number> {
  await using server = await startPostgres({ settings: SETTINGS })
  await fillStore({ place: server.url(), engine: postgres, parcels, endpoints, say })
  const client = new pg.Client({ connectionString: server.url() })
  await client.connect()
  await client.query('vacuum')
  const { rows } = await client.query<{ bytes: string }>('select pg_database_size(current_database()) as bytes')
  const tables = await client.query<{ name: string; bytes: string }>(
    'select relname as name, pg_total_relation_size(oid) as bytes from pg_class where relkind = $1 order by 2 desc limit 8',
    ['r'],
  )
  say(tables.rows.map(({ name, bytes }) => `${name} ${Math.round(Number(bytes) / MB)} MB`).join(', '))
  await client.end()
  return Number(rows[0]?.bytes)
}
