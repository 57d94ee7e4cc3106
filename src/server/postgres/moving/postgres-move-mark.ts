import { setTimeout as pause } from 'node:timers/promises'
import type { QueryResult, QueryResultRow } from 'pg'
import { systemCode } from '../../../core/domain/errors.ts'
import type { SqlValue } from '../../../core/store/statement.ts'
import { addLeftStore, type LeftStore, parseLeftStores } from '../../../upkeep/moving/store-move.rules.ts'
import {
  decodeMark,
  encodeMark,
  keyOf,
  LEFT_STORES,
  MARK_COLUMNS,
  MARK_TABLE,
  type MarkRow,
  MOVED_TABLES,
  type MovedTable,
  type MoveMark,
  type MoveSide,
} from '../../../upkeep/moving/store-moves.rows.ts'
import { IDLE_MS_MAX, PLAN_SETTINGS } from '../postgres.ts'
import { isConflict, movingFailure, openingFailure } from '../postgres-failure.ts'
import { nameDatabase } from '../postgres-pool.ts'
import { type ServerWatch, watchServer } from '../server-watch.ts'

export interface MoveClient {
  query<Row extends QueryResultRow>(text: string, values?: readonly SqlValue[]): Promise<QueryResult<Row>>
  /**
   * Runs work in a transaction with the relay's planner settings and its limit on idle time. If a transaction is open, runs the work in it.
   * `settings`: more settings of the server.
   */
  transaction<T>(settings: Readonly<Record<string, string | number>>, work: () => Promise<T>): Promise<T>
  close(): Promise<void>
}

const CONNECT_TIMEOUT_MS = 5000
/** Longer than any statement of a move takes. A relay that stops may have to wait this long. */
export const ANSWER_TIMEOUT_MS = 30_000

/**
 * Opens a connection for a move. `watch`: notices when the server falls silent, so that a call fails at once; absent: each call waits.
 */
export async function openMoveClient(address: string, watch?: ServerWatch): Promise<MoveClient> {
  const { pool, run, close } = (watch ?? watchServer(address)).openPool({
    connectionsMax: 1,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    answerTimeoutMs: ANSWER_TIMEOUT_MS,
  })
  const ask: typeof run = watch === undefined ? (work) => work(() => undefined) : run
  try {
    const client = await ask(() => pool.connect())
    const query: MoveClient['query'] = async (text, values = []) => {
      try {
        return await ask(() => client.query({ text, values: [...values] }))
      } catch (error) {
        throw movingFailure(error)
      }
    }
    let isOpen = false
    return {
      query,
      async transaction(settings, work) {
        if (isOpen) return await work()
        const set = Object.entries({ ...PLAN_SETTINGS, idle_in_transaction_session_timeout: IDLE_MS_MAX, ...settings }).map(
          ([name, value]) => `set local ${name} = ${value}`,
        )
        isOpen = true
        try {
          await query(['begin isolation level read committed', ...set].join('; '))
          const result = await work()
          await query('commit')
          return result
        } catch (error) {
          await query('rollback').catch(() => undefined)
          throw error
        } finally {
          isOpen = false
        }
      },
      async close() {
        client.release(true)
        await close()
      },
    }
  } catch (error) {
    await close()
    throw openingFailure(nameDatabase(address), error)
  }
}

export async function withMoveClient<T>(address: string, work: (client: MoveClient) => Promise<T>, watch?: ServerWatch): Promise<T> {
  const client = await openMoveClient(address, watch)
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}

const REST_MS = 50
/** Longer than `deadlock_timeout` (1 s), after which the server cancels an autovacuum that holds the lock. */
const LONG_MS = 1500
const LOCK_NOT_AVAILABLE = '55P03'

/** How long each attempt waits for a lock, in milliseconds. The first waits are short, because writers queue behind them. */
export const BESIDE_WRITERS: readonly number[] = [...Array.from({ length: 8 }, () => 250), LONG_MS, LONG_MS, LONG_MS]
/** The waits while nobody writes, in milliseconds. */
export const ALONE: readonly number[] = [LONG_MS, LONG_MS]

/** Runs work in a transaction that takes locks. Each attempt waits for a lock as long as its item of `waits` says. */
export async function locking<T>(
  client: MoveClient,
  waits: readonly number[],
  work: () => Promise<T>,
  settings: Readonly<Record<string, number>> = {},
): Promise<T> {
  for (let nth = 0; ; nth++) {
    try {
      return await client.transaction({ ...settings, lock_timeout: waits[nth] ?? LONG_MS }, work)
    } catch (error) {
      if (!isHeld(error) || nth >= waits.length - 1) throw error
      await pause(REST_MS)
    }
  }
}

function isHeld(error: unknown): boolean {
  return isConflict(error) || systemCode(error) === LOCK_NOT_AVAILABLE
}

/** Ignores the error of a lock that others hold. Throws any other error. */
export function ignoreHeld(error: unknown): void {
  if (!isHeld(error)) throw error
}

const UNDEFINED_TABLE = '42P01'
/** Stands in the mark for the id of a replica if no replica continues the move. */
const NOBODY = -1

/** Reads the mark that a move leaves in the store; null: there is none. */
export async function readMark({ query }: Pick<MoveClient, 'query'>): Promise<MoveMark | null> {
  const { rows: found } = await query<{ there: string | null }>('select to_regclass($1)::text as there', [MARK_TABLE])
  if (found[0]?.there === null) return null
  // The table may be dropped between the two queries.
  const { rows } = await query<MarkRow>(`select ${MARK_COLUMNS} from ${MARK_TABLE}`).catch((error: unknown) => {
    if (systemCode(error) === UNDEFINED_TABLE) return { rows: [] }
    throw error
  })
  return rows[0] === undefined ? null : decodeMark(rows[0])
}

async function makeMarkTable({ query }: MoveClient): Promise<void> {
  await query(`create table if not exists ${MARK_TABLE} (id integer primary key check (id = 1), state text not null, move_id text not null,
    peer text not null, address text not null, at_ms bigint not null,
    replica_id bigint not null, paused_at_ms bigint, backend_pid integer)`)
}

export async function writeMark(client: MoveClient, mark: MoveMark): Promise<void> {
  const { query } = client
  await makeMarkTable(client)
  await query(`delete from ${MARK_TABLE}`)
  await query(`insert into ${MARK_TABLE} (id, ${MARK_COLUMNS}) values (1, $1, $2, $3, $4, $5, $6)`, encodeMark(mark))
}

async function dropMark({ query }: MoveClient): Promise<void> {
  await query(`drop table if exists ${MARK_TABLE}`)
  await query(`delete from counter where name = '${MOVING}'`)
}

/** While this counter is above 0, no replica writes. */
const MOVING = 'moving'
const NOW_MS = '(extract(epoch from clock_timestamp()) * 1000)::bigint'
/** A switch counts as failed after this time, or when its connection is gone. A pooler may keep that connection open. */
const PAUSE_MS_MAX = 10_000
const PAUSE_GOES_ON = `paused_at_ms > ${NOW_MS} - ${PAUSE_MS_MAX} and exists (select 1 from pg_stat_activity where pid = mark.backend_pid)`

/** Asks all replicas to stop writing. They see the request when they next look for commits of other replicas. */
export async function askToPause({ query, transaction }: MoveClient, { moveId }: MoveSide): Promise<void> {
  await transaction({}, async () => {
    await query(`update ${MARK_TABLE} set state = 'pausing', paused_at_ms = ${NOW_MS}, backend_pid = pg_backend_pid() where move_id = $1`, [
      moveId,
    ])
    await query(`insert into counter (name, value, base, version) values ('${MOVING}', 1, 0, 0) on conflict (name) do update set value = 1`)
  })
}

export async function countReplicas({ query }: MoveClient): Promise<number> {
  const { rows } = await query<{ n: number }>(`select count(*) as n from replica where until_ms > ${NOW_MS}`)
  return rows[0]?.n ?? 0
}

/** Whether the move is still under way. If the replica that runs it seems to be gone, another replica ends the move. */
export async function isMine({ query }: MoveClient, { moveId }: MoveSide, lock = ''): Promise<boolean> {
  const { rowCount } = await query(`select 1 from ${MARK_TABLE} where move_id = $1 and state in ('copying', 'pausing') ${lock}`, [moveId])
  return rowCount === 1
}

/** Keeps other replicas from ending the move during this transaction. Throws if the move has ended already. */
export async function holdMark(client: MoveClient, side: MoveSide): Promise<void> {
  if (!(await isMine(client, side, 'for share'))) throw new Error(GIVEN_UP)
}

const GIVEN_UP = 'another replica has given the move up'

/** Deletes recorded keys of changed rows. Throws if the move has ended: the keys may be those of the next move. */
export async function dropChanges({ query }: MoveClient, table: MovedTable, marks: readonly number[], { moveId }: MoveSide): Promise<void> {
  const { rowCount } = await query(
    `delete from ${changesOf(table)} where seq = any($1::bigint[])
      and exists (select 1 from ${MARK_TABLE} where move_id = $2 and state in ('copying', 'pausing'))`,
    [[...marks], moveId],
  )
  if (rowCount !== marks.length) throw new Error(GIVEN_UP)
}

/** Notes that no replica continues the move, and ends the pause. */
async function leaveMark({ query }: MoveClient): Promise<void> {
  await query(`update ${MARK_TABLE} set state = 'copying', move_id = '', replica_id = ${NOBODY}`)
  await query(`delete from counter where name = '${MOVING}'`)
}

/** Whether a live replica copies the store, or a switch is under way. */
export async function isBeingMoved({ query }: MoveClient): Promise<boolean> {
  const { rowCount } = await query(`select 1 from ${MARK_TABLE} as mark
    where (state = 'copying' and exists (select 1 from replica where replica.id = mark.replica_id and until_ms > ${NOW_MS}))
      or (state = 'pausing' and ${PAUSE_GOES_ON})`)
  return rowCount === 1
}

export async function lockMark(client: MoveClient): Promise<void> {
  await makeMarkTable(client)
  await client.query(`lock table ${MARK_TABLE} in exclusive mode`)
}

/** Notes that the switch to this store has begun. While the switch is under way, no other move may empty the store. */
export async function noteSwitch({ query }: MoveClient, { moveId }: MoveSide): Promise<void> {
  await query(`update ${MARK_TABLE} set paused_at_ms = ${NOW_MS}, backend_pid = pg_backend_pid() where move_id = $1`, [moveId])
}

export async function isBeingSwitched({ query }: MoveClient): Promise<boolean> {
  const { rowCount } = await query(`select 1 from ${MARK_TABLE} as mark where state = 'receiving' and ${PAUSE_GOES_ON}`)
  return rowCount === 1
}

/** Names the table in which a move records the keys of changed rows. */
export const changesOf = ({ name }: MovedTable): string => `moving_${name}`

/** The rows that each trigger sees. A trigger fires once for each statement. An insert with `on conflict do update` fires two triggers. */
const EVENTS = {
  insert: { names: 'referencing new table as added', rows: ['added'] },
  update: { names: 'referencing old table as gone new table as added', rows: ['gone', 'added'] },
  delete: { names: 'referencing old table as gone', rows: ['gone'] },
} as const

/**
 * Begins to record the key of every changed row. If the key itself changes, both keys are recorded. Waits for open transactions that have
 * written to the table.
 */
export async function keepChanges({ query }: MoveClient, table: MovedTable): Promise<void> {
  const changes = changesOf(table)
  const names = keyOf(table).map(({ name }) => name)
  const columns = keyOf(table).map(({ name, kind }) => `${name} ${kind === 'number' ? 'bigint' : kind === 'bytes' ? 'bytea' : 'text'}`)
  await query(`create table ${changes} (seq bigint primary key generated always as identity, ${columns.join(', ')})`)
  for (const [event, { names: transitions, rows }] of Object.entries(EVENTS)) {
    const keys = rows.map((row) => `select ${names.join(', ')} from ${row}`).join(' union ')
    await query(`create function ${changes}_${event}() returns trigger language plpgsql as $$ begin
      insert into ${changes} (${names.join(', ')}) ${keys}; return null; end $$`)
    await query(`create trigger ${changes}_${event} after ${event} on ${table.name} ${transitions}
      for each statement execute function ${changes}_${event}()`)
  }
}

/** Makes the database refuse all later writes of every relay. */
export async function refuseWrites({ query }: MoveClient): Promise<void> {
  await query(`create function moved_refuse() returns trigger language plpgsql as $$ begin
    raise exception 'the store was moved' using errcode = 'object_not_in_prerequisite_state'; end $$`)
  for (const table of REFUSING)
    await query(`create trigger moved_refuse before insert or update or delete or truncate on ${table} for each statement
      execute function moved_refuse()`)
}

/**
 * The tables that refuse writes after the switch: all moved tables, and two others. Every transaction that takes a number writes `counter`. And a
 * replica that stood still during the switch must not renew its lease in `replica`.
 */
export const REFUSING: readonly string[] = ['counter', 'replica', ...MOVED_TABLES.map(({ name }) => name)]

/** Stops recording the keys of a table's changed rows. Waits for open transactions that read or write the table. */
async function stopKeepingChanges({ query }: MoveClient, table: MovedTable): Promise<void> {
  await query(`drop function if exists ${functionsOf(table).join(', ')} cascade`)
}

/** Removes all that a move adds to a store, except the mark. */
export async function dropMoveParts({ query }: MoveClient): Promise<void> {
  await query(`drop function if exists ${['moved_refuse()', ...MOVED_TABLES.flatMap(functionsOf)].join(', ')} cascade`)
  await query(`drop table if exists ${MOVED_TABLES.map(changesOf).join(', ')}`)
}

function functionsOf(table: MovedTable): readonly string[] {
  return Object.keys(EVENTS).map((event) => `${changesOf(table)}_${event}()`)
}

/** Remembers a store that a move has left behind. `current`: the name of this store. */
export async function noteLeftStore({ query }: MoveClient, left: LeftStore, current: string): Promise<void> {
  const { rows } = await query<{ value: Buffer }>('select value from setting where name = $1', [LEFT_STORES])
  const stores = addLeftStore(rows[0] === undefined ? [] : parseLeftStores(rows[0].value.toString()), left, current)
  await query('insert into setting (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value', [
    LEFT_STORES,
    Buffer.from(JSON.stringify(stores)),
  ])
}

async function failMoves({ query }: MoveClient, failure: string, nowMs: number): Promise<void> {
  await query("update job set state = 'failed', failure = $1, ended_at_ms = $2 where kind = 'move' and ended_at_ms is null", [
    failure,
    nowMs,
  ])
}

/** Finds the mark if the move `$1` fills this store. Keeps other moves from replacing the mark until the transaction ends. */
export const MARK_IS_MINE = `select 1 from ${MARK_TABLE} where state = 'receiving' and move_id = $1 for share`

/** Whether a move of this store has begun, and no relay works on it any more. */
export async function wasLeft(client: MoveClient): Promise<boolean> {
  const state = (await readMark(client))?.state
  return (state === 'copying' || state === 'pausing') && !(await isBeingMoved(client))
}

/**
 * Ends a move that has not switched yet. `isToEnd` decides while the mark is locked, because the switch may have happened since the caller
 * looked. First the pause and the job end. Then everything that the move has added to the tables is dropped. If other transactions keep a lock
 * for too long, this function rejects, and the caller may call it again.
 */
export async function endMove(client: MoveClient, failure: string, nowMs: number, isToEnd: () => Promise<boolean>): Promise<void> {
  await locking(client, BESIDE_WRITERS, async () => {
    await lockMark(client)
    if (!(await isToEnd())) return
    await leaveMark(client)
    await failMoves(client, failure, nowMs)
  })
  // Each table has a transaction to itself, so that no lock is held during the wait for another. The mark is read each time, because the
  // next move may have begun, and its database functions have the same names.
  for (const table of MOVED_TABLES)
    await locking(client, BESIDE_WRITERS, async () => {
      await lockMark(client)
      if (await wasLeft(client)) await stopKeepingChanges(client, table)
    })
  await locking(client, BESIDE_WRITERS, async () => {
    await lockMark(client)
    if (!(await wasLeft(client))) return
    await dropMoveParts(client)
    await dropMark(client)
  })
}

/** Puts a store back into use if it was moved. `name`: its name in messages. */
export async function undoMove(
  client: MoveClient,
  failure: string,
  { name, nowMs }: { readonly name: string; readonly nowMs: number },
): Promise<void> {
  await locking(client, BESIDE_WRITERS, async () => {
    await lockMark(client)
    const mark = await readMark(client)
    if (mark?.state !== 'moved') return
    await dropMoveParts(client)
    await noteLeftStore(client, { name: mark.peer, atMs: nowMs }, name)
    await dropMark(client)
    await failMoves(client, failure, nowMs)
  })
}

/** Removes the mark from a new store that is complete. Then it opens like any other store. */
export async function releaseMark(client: MoveClient, moveId: string): Promise<void> {
  const isReceiving = async () => {
    const mark = await readMark(client)
    return mark?.state === 'receiving' && mark.moveId === moveId
  }
  if (!(await isReceiving())) return
  await locking(client, BESIDE_WRITERS, async () => {
    await lockMark(client)
    if (await isReceiving()) await dropMark(client)
  })
}
