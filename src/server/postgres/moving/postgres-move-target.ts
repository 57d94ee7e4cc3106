import { columnsOf, MOVED_TABLES, type MovedTable, movedTable, uniqueAmong } from '../../../upkeep/moving/moved-tables.rows.ts'
import { MOVE_WAS_CANCELLED } from '../../../upkeep/moving/store-move.rules.ts'
import { type MoveSide, type MoveTarget, refuseMoved, refuseShared, refuseTaken } from '../../../upkeep/moving/store-moves.rows.ts'
import { takePoolerParameter } from '../pooler-parameter.ts'
import { migratePostgres } from '../postgres-migrate.ts'
import { nameDatabase, openPool } from '../postgres-pool.ts'
import { refuseUnsafeServer } from '../refuse-unsafe-server.ts'
import { writeSharedCarrier } from './postgres-move-carrier.ts'
import { ANSWER_TIMEOUT_MS, type MoveClient, openMoveClient } from './postgres-move-client.ts'
import { releaseMark } from './postgres-move-end.ts'
import { BESIDE_WRITERS, locking } from './postgres-move-locks.ts'
import { isBeingSwitched, lockMark, MARK_IS_MINE, noteLeftStore, noteSwitch, readMark, writeMark } from './postgres-move-mark.ts'
import { createStoredTables, keySet, matchesKey, rowSet } from './postgres-stored-tables.ts'

const CONNECT_TIMEOUT_MS = 5000
/** Replicas take the ids of parcels and pushes in runs of this length. */
const RUN = 10_000
/** The commits of the copy do not wait for the disk, because the last commit of the move makes everything durable. */
const COPYING = { synchronous_commit: 'off' }

/** Opens the database to which a store moves. `answerTimeoutMs`: how long each statement that makes its tables may take. */
export async function openPostgresMoveTarget(address: string, side: MoveSide, answerTimeoutMs = ANSWER_TIMEOUT_MS): Promise<MoveTarget> {
  await prepareSchema(address, answerTimeoutMs)
  const client = await openMoveClient(address)
  const { query, transaction } = client
  const name = nameDatabase(address)
  try {
    await refuseOther(client, name)
  } catch (error) {
    await client.close()
    throw error
  }
  const mine = async () => {
    const { rowCount } = await query(MARK_IS_MINE, [side.moveId])
    if (rowCount !== 1) refuseShared(name)
  }
  return {
    ...createStoredTables(client),
    async claim() {
      // If two moves create the table for the mark at the same time, one of them fails. It tries again and finds the table.
      await locking(client, BESIDE_WRITERS, async () => {
        await lockMark(client)
        await refuseOther(client, name)
        if (await isBeingSwitched(client)) refuseShared(name)
        await query(`truncate ${MOVED_TABLES.map((table) => table.name).join(', ')}`)
        await writeMark(client, { ...side, state: 'receiving' })
      })
    },
    async replace(copied, keys, rows) {
      const table = movedTable(copied)
      await transaction(COPYING, async () => {
        await mine()
        await remove(client, table, keySet(table, keys), matchesKey(table))
        await clear(client, table, uniqueAmong(table, rows))
        if (rows.length === 0) return
        const { text, values } = rowSet(table.columns, rows, 'added')
        await query(`insert into ${table.name} (${columnsOf(table)}) select * from ${text}`, values)
      })
    },
    async complete(numbers, { jobId, done, nowMs }) {
      await transaction({}, async () => {
        await mine()
        const { rowCount: cancelled } = await query('select 1 from job where id = $1 and ended_at_ms is not null', [jobId])
        if (cancelled !== 0) throw new Error(MOVE_WAS_CANCELLED)
        await noteSwitch(client, side)
        await query("update counter set value = $1, base = $1 where name = 'sequence'", [numbers.sequence])
        for (const table of ['parcel', 'inbox'] as const)
          await query('select setval($1::regclass, $2, false)', [`${table}_numbers`, (Math.floor(numbers[table] / RUN) + 1) * RUN])
        for (const table of ['endpoint', 'delivery', 'job'] as const) await setIdentity(client, table, numbers[table])
        for (const table of ['content', 'attempt', 'refusal', 'operator_event', 'operator_action', 'quarantine_count'] as const) {
          const { rows } = await query<{ last: number | null }>(`select max(id) as last from ${table}`)
          await setIdentity(client, table, rows[0]?.last ?? 0)
        }
        if (numbers.carrier !== null) await writeSharedCarrier(client, numbers.carrier)
        await noteLeftStore(client, { name: side.peer, atMs: nowMs }, name)
        await query("update job set state = 'done', done = $1, ended_at_ms = $2 where id = $3", [done, nowMs, jobId])
      })
    },
    release: () => releaseMark(client, side.moveId),
    close: client.close,
  }
}

/** Makes the relay's tables. Rejects if the server could lose confirmed commits. */
async function prepareSchema(address: string, answerTimeoutMs: number): Promise<void> {
  const name = nameDatabase(address)
  const { url } = takePoolerParameter(address)
  const connecting = { connectTimeoutMs: CONNECT_TIMEOUT_MS, onConnectionLost: () => undefined }
  const pool = openPool(url, { ...connecting, connectionsMax: 1, answerTimeoutMs })
  try {
    await refuseUnsafeServer(pool, name)
    await migratePostgres(pool, name)
  } finally {
    await pool.end()
  }
}

async function refuseOther(client: MoveClient, name: string): Promise<void> {
  const mark = await readMark(client)
  if (mark?.state === 'receiving') return
  refuseMoved(mark, name)
  for (const table of MOVED_TABLES) {
    const { rowCount } = await client.query(`select 1 from ${table.name} limit 1`)
    if (rowCount !== 0) refuseTaken(name, table.name)
  }
}

/** Makes the ids of a table continue after `last`. */
export async function setIdentity({ query }: MoveClient, table: string, last: number): Promise<void> {
  await query("select setval(pg_get_serial_sequence($1, 'id'), $2, $3)", [table, Math.max(last, 1), last > 0 ? 'true' : 'false'])
}

async function remove(
  { query }: MoveClient,
  { name }: MovedTable,
  { text, values }: ReturnType<typeof keySet>,
  condition: string,
): Promise<void> {
  await query(`delete from ${name} as stored using ${text} where ${condition}`, values)
}

/** Deletes stored rows that have the unique key of a new row. They are outdated: the move copies their new state later. */
async function clear(client: MoveClient, table: MovedTable, rows: MoveTargetRows): Promise<void> {
  const { unique } = table
  if (unique === null || rows.length === 0) return
  const columns = unique.columns.flatMap((at) => table.columns[at] ?? [])
  const matches = columns.map(({ name }) => `stored.${name} = k.${name}`)
  const conditions = unique.whenNull === null ? matches : [...matches, `stored.${table.columns[unique.whenNull]?.name} is null`]
  const keys = rows.map((row) => unique.columns.map((at) => row[at] ?? null))
  await remove(client, table, rowSet(columns, keys, 'k'), conditions.join(' and '))
}

type MoveTargetRows = Parameters<MoveTarget['replace']>[2]
