import pg from 'pg'
import { EVENTS_PER_PARCEL, eventBody } from '../load/event.ts'

const PREPARED = 20_000

/** Returns how many bodies per second one connection inserts in committed batches of `batch`: the cost of storing the bytes alone. */
export async function insertBare(url: string, batch: number, durationMs: number): Promise<number> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('create table bare (id bigint primary key, body bytea not null)')
  const nowMs = Date.now()
  const bodies = Array.from({ length: PREPARED }, (_, at) => eventBody(at, at % EVENTS_PER_PARCEL, nowMs))
  const insert = { name: 'bare', text: 'insert into bare (id, body) select * from unnest($1::bigint[], $2::bytea[])' }
  const run = async (fromId: number, untilMs: number): Promise<number> => {
    let id = fromId
    while (performance.now() < untilMs) {
      const ids = Array.from({ length: batch }, (_, at) => id + at)
      await client.query({ ...insert, values: [ids, ids.map((one) => bodies[one % PREPARED])] })
      id += batch
    }
    return id
  }
  const warm = await run(0, performance.now() + 1000)
  const startMs = performance.now()
  const last = await run(warm, startMs + durationMs)
  const seconds = (performance.now() - startMs) / 1000
  await client.query('drop table bare')
  await client.end()
  return (last - warm) / seconds
}
