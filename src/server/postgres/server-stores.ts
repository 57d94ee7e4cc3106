import type { Pool } from 'pg'
import { addRestore, nextMultiple, parseRestores, type RestoreRecord } from '../../core/domain/admin/restore.ts'
import { TOMBSTONE_KEY } from '../../core/store/settings.ts'
import { DROP_TOKEN_KEYS, DROP_UNTOLD, RESTORES } from '../../upkeep/restore/restores.rows.ts'
import type { InspectedDatabase, MarkOrder, ServerStores } from '../../upkeep/stores-on-servers.ts'
import { keepRestored } from './backups/restored-tombstones.ts'
import { countReplicas, type MoveClient, readMark, withMoveClient } from './moving/postgres-move-mark.ts'
import { setIdentity } from './moving/postgres-move-target.ts'
import { postgresMoves } from './moving/postgres-moves.ts'
import { openPostgres, postgres, refuseUnsafeServer } from './postgres-engine.ts'
import { isServerAway } from './postgres-failure.ts'
import { inspectSchema } from './postgres-migrate.ts'
import { nameDatabase } from './postgres-pool.ts'

/** An order to mark a database that the server's own tools have restored. */
/**
 * Makes a restored database continue with numbers that were never used, and expect no push from before the restore. If a relay uses the
 * database, changes nothing and rejects.
 */
async function markRestored(order: MarkOrder): Promise<RestoreRecord> {
  // Opening the store refuses an unsafe server or another schema.
  await (await postgres.openWriteStore(order.address)).close()
  const name = nameDatabase(order.address)
  return await withMoveClient(order.address, async (client) => {
    const mark = await readMark(client)
    if (mark?.state === 'moved')
      throw new Error(`store: ${name} was moved to ${mark.peer}. Name that in \`store\`, or undo the move first.`)
    return await client.transaction({}, async () => {
      // A relay that starts now waits until this transaction ends.
      await client.query('lock table replica in share row exclusive mode')
      const replicas = await countReplicas(client)
      if (replicas > 0)
        throw new Error(`relays use ${name} (replicas: ${replicas}; one that was killed counts until its lease runs out). Stop them first.`)
      const restored = await setNumbers(client, order)
      await client.query('delete from expected_push')
      await client.query(DROP_TOKEN_KEYS)
      await client.query(DROP_UNTOLD)
      await client.query('update parcel set next_poll_at_ms = $1 where next_poll_at_ms > $1', [order.nowMs])
      if (order.tombstones !== null) await keepRestored(client, order.tombstones)
      await writeRecord(client, restored, order)
      return restored
    })
  })
}

/**
 * Raises the counters above the numbers that the lost part of the database may have used. The highest ids of that part are unknown. Nearly every
 * row was recorded with a sequence of its own, so ids are assumed to be at most `last`, and ids of deliveries at most `last` times the number
 * of endpoints.
 */
async function setNumbers(client: MoveClient, { last, nowMs }: MarkOrder): Promise<RestoreRecord> {
  const { query } = client
  const number = async (text: string) => Number((await query<{ n: number | null }>(text)).rows[0]?.n ?? 0)
  const from = await number("select value as n from counter where name = 'sequence' for update")
  const to = nextMultiple(Math.max(from, last))
  await query("update counter set value = $1, base = $1 where name = 'sequence'", [to])
  const endpoints = await number('select count(*) as n from endpoint')
  const given = async (table: string, sequence: string, perSequence = 1) =>
    Math.max(await number(`select last_value as n from ${sequence}`), await number(`select max(id) as n from ${table}`), last * perSequence)
  await query("select setval('parcel_numbers', $1, false)", [nextMultiple(await given('parcel', 'parcel_numbers'))])
  await query("select setval('inbox_numbers', $1, false)", [nextMultiple(await given('inbox', 'inbox_numbers'))])
  await setIdentity(client, 'endpoint', nextMultiple(await given('endpoint', 'endpoint_id_seq')))
  await setIdentity(client, 'job', nextMultiple(await given('job', 'job_id_seq')))
  await setIdentity(client, 'delivery', nextMultiple(await given('delivery', 'delivery_id_seq', Math.max(1, endpoints))))
  return { atMs: nowMs, backup: 'database', madeAtMs: null, from, to, delivered: null, isTold: false }
}

async function writeRecord({ query }: MoveClient, restored: RestoreRecord, { nowMs, by }: MarkOrder): Promise<void> {
  const { rows } = await query<{ value: Buffer }>('select value from setting where name = $1', [RESTORES])
  const restores = addRestore(rows[0] === undefined ? [] : parseRestores(rows[0].value.toString()), restored)
  await query('insert into setting (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value', [
    RESTORES,
    Buffer.from(JSON.stringify(restores)),
  ])
  const detail = JSON.stringify({ lastSequence: restored.from, nextSequence: restored.to })
  await query(
    `insert into operator_action (at_ms, by_kind, by_name, address, action, target_kind, target, detail)
      values ($1, $2, $3, null, 'store.restored', 'store', $4, $5)`,
    [nowMs, by.kind, by.name, restored.backup, detail],
  )
}

/** Finds out whether a relay could use a database, without changing anything. If not, rejects with the reasons and their remedies. */
async function inspectPostgres(url: string): Promise<InspectedDatabase> {
  const name = nameDatabase(url)
  const { pool, close } = openPostgres(url, 1)
  try {
    await refuseUnsafeServer(pool, name)
    const schema = await inspectSchema(pool, name)
    if (schema === 'none') {
      const { rows } = await pool.query<{ may: boolean }>("select has_schema_privilege(current_schema(), 'CREATE') as may")
      if (rows[0]?.may !== true)
        throw new Error(`store: the relay's user may not make its tables in ${name}. Make that user the owner of the database.`)
      return { schema, replicas: 0, tombstoneKey: null }
    }
    const { rows } = await pool.query<{ live: number }>(
      'select count(*)::integer as live from replica where until_ms > extract(epoch from now()) * 1000',
    )
    return { schema, replicas: rows[0]?.live ?? 0, tombstoneKey: schema === 'current' ? await tombstoneKeyIn(pool) : null }
  } finally {
    await close()
  }
}

async function tombstoneKeyIn(pool: Pool): Promise<string | null> {
  const { rows } = await pool.query<{ value: Buffer }>('select value from setting where name = $1 and exists (select 1 from tombstone)', [
    TOMBSTONE_KEY,
  ])
  return rows[0]?.value.toString() ?? null
}

export const SERVER_STORES: ServerStores = {
  engine: postgres,
  moves: postgresMoves,
  nameOf: nameDatabase,
  inspect: inspectPostgres,
  isAway: isServerAway,
  markRestored,
}
