import type { CarrierMemory } from '../../../core/domain/polling/call-budget.ts'
import type { UnavailableReason } from '../../../core/domain/polling/carrier-answer.ts'
import type { SqlValue } from '../../../core/store/statement.ts'
import { type Cell, MOVE_WAS_CANCELLED, type StoredRow } from '../../../upkeep/moving/store-move.rules.ts'
import {
  columnsOf,
  keyOf,
  MOVED_TABLES,
  type MovedTable,
  type MoveSide,
  type MoveTarget,
  movedTable,
  refuseMoved,
  refuseShared,
  refuseTaken,
  type StoredTables,
  uniqueAmong,
} from '../../../upkeep/moving/store-moves.rows.ts'
import { escapeNul } from '../postgres-dialect.ts'
import { refuseUnsafeServer } from '../postgres-engine.ts'
import { migratePostgres } from '../postgres-migrate.ts'
import { nameDatabase, openPool, takePoolerParameter } from '../postgres-pool.ts'
import {
  ANSWER_TIMEOUT_MS,
  BESIDE_WRITERS,
  isBeingSwitched,
  locking,
  lockMark,
  MARK_IS_MINE,
  type MoveClient,
  noteLeftStore,
  noteSwitch,
  openMoveClient,
  readMark,
  releaseMark,
  writeMark,
} from './postgres-move-mark.ts'

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
        for (const table of await tablesWithIds(client)) {
          const { rows } = await query<{ last: number | null }>(LAST_GIVEN[table] ?? `select max(id) as last from ${table}`)
          await setIdentity(client, table, rows[0]?.last ?? 0)
        }
        for (const table of ['endpoint', 'delivery', 'job'] as const) await setIdentity(client, table, numbers[table])
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

/** The feed names breaches that are gone, and must not name others by their ids. */
const LAST_GIVEN: Readonly<Record<string, string>> = {
  watchdog_breach: 'select greatest((select max(id) from watchdog_breach), (select max(-entry) from feed where entry < 0)) as last',
}

/** The tables of the schema whose ids the server gives. */
async function tablesWithIds({ query }: MoveClient): Promise<readonly string[]> {
  const { rows } = await query<{ name: string }>(
    "select table_name as name from information_schema.columns where table_schema = current_schema() and column_name = 'id' and is_identity = 'YES' order by 1",
  )
  return rows.map(({ name }) => name)
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
function keySet(table: MovedTable, keys: readonly StoredRow[]): { readonly text: string; readonly values: readonly SqlValue[] } {
  return rowSet(keyOf(table), keys, 'k')
}

function matchesKey(table: MovedTable): string {
  return keyOf(table)
    .map(({ name }) => `stored.${name} = k.${name}`)
    .join(' and ')
}

/** Makes a table of rows for a statement, with one array parameter for each column. `name`: its name in the statement. */
function rowSet(columns: MovedTable['columns'], rows: readonly StoredRow[], name: string) {
  const arrays = columns.map(({ kind }, at) => `$${at + 1}::${ARRAYS[kind]}`)
  return {
    text: `unnest(${arrays.join(', ')}) as ${name} (${columns.map((column) => column.name).join(', ')})`,
    values: columns.map((_, at) => rows.map((row) => escaped(row[at] ?? null))),
  }
}

function escaped<Value>(value: Value): Value | string {
  return typeof value === 'string' ? escapeNul(value) : value
}

const NOW_MS = '(extract(epoch from clock_timestamp()) * 1000)::bigint'
/** The time of the budget's clock, which pauses use. It never goes back, even if the server's clock is set back. */
const BUDGET_MS = `greatest(budget.seen_ms, ${NOW_MS} + budget.offset_ms)`

interface SharedRow {
  readonly now_ms: number
  readonly days: Readonly<Record<string, number>>
  readonly paused_ms: number
  readonly token_paused_ms: number
  readonly refused_ms: number | null
  readonly tries: number
  readonly mark: string | null
}

/**
 * Reads the facts about the carrier that replicas share, in the form in which a single relay stores them; null: no calls, pauses or refusals
 * are stored.
 */
export async function readSharedCarrier({ query }: MoveClient): Promise<CarrierMemory | null> {
  const { rows } = await query<SharedRow>(`select ${NOW_MS} as now_ms, days, budget.paused_until_ms - ${BUDGET_MS} as paused_ms,
      token.paused_until_ms - ${BUDGET_MS} as token_paused_ms, token.refused_until_ms - ${BUDGET_MS} as refused_ms, tries, mark
    from carrier_budget as budget, carrier_token as token where budget.id = 1 and token.id = 1`)
  const [row] = rows
  if (row === undefined) return null
  const until = (leftMs: number) => (leftMs > 0 ? row.now_ms + leftMs : null)
  const memory: CarrierMemory = {
    atMs: row.now_ms,
    days: Object.entries(row.days).map(([day, calls]) => ({ day: Number(day), calls: Number(calls) })),
    pausedUntilMs: until(row.paused_ms),
    tokenPausedUntilMs: until(row.token_paused_ms),
    refusal:
      row.refused_ms === null ? null : { tries: row.tries, untilMs: row.now_ms + Math.max(0, row.refused_ms), mark: readMarkOf(row.mark) },
  }
  const { days, pausedUntilMs, tokenPausedUntilMs, refusal } = memory
  return days.length === 0 && pausedUntilMs === null && tokenPausedUntilMs === null && refusal === null ? null : memory
}

/** Writes the facts that a single relay keeps about the carrier into the tables that replicas share. */
async function writeSharedCarrier({ query }: MoveClient, memory: CarrierMemory): Promise<void> {
  const { days, pausedUntilMs, tokenPausedUntilMs, refusal } = memory
  const calls = Object.fromEntries(days.map((one) => [one.day, one.calls]))
  await query('update carrier_budget set days = $1::text::jsonb, paused_until_ms = $2 where id = 1', [
    JSON.stringify(calls),
    pausedUntilMs ?? 0,
  ])
  // A single relay stores a pause for tokens only if the token endpoint asked for the pause, so this is always the reason.
  const trouble: UnavailableReason | null = tokenPausedUntilMs === null ? null : 'rate_limited'
  await query('update carrier_token set paused_until_ms = $1, trouble = $2, tries = $3, refused_until_ms = $4, mark = $5 where id = 1', [
    tokenPausedUntilMs ?? 0,
    trouble,
    refusal?.tries ?? 0,
    refusal?.untilMs ?? null,
    refusal?.mark === null || refusal === null ? null : JSON.stringify(refusal.mark),
  ])
}

function readMarkOf(text: string | null): NonNullable<CarrierMemory['refusal']>['mark'] {
  // Only the shared token writes this, so its shape is certain.
  return text === null ? null : (JSON.parse(text) as { readonly salt: string; readonly digest: string })
}
