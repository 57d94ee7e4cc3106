import { setTimeout as pause } from 'node:timers/promises'
import { type Cell, MOVE_WAS_STOPPED, type StoreNumbers } from '../../../upkeep/moving/store-move.rules.ts'
import {
  CHANGES_COUNTED,
  createHoldOff,
  keyOf,
  MOVED_TABLES,
  type MovedTable,
  type MoveMark,
  type MoveSide,
  type MoveSource,
  movedTable,
  type StoreMoves,
  type WritersLock,
} from '../../../upkeep/moving/store-moves.rows.ts'
import { nameDatabase } from '../postgres-pool.ts'
import type { ServerWatch } from '../server-watch.ts'
import {
  ALONE,
  askToPause,
  BESIDE_WRITERS,
  changesOf,
  countReplicas,
  dropChanges,
  dropMoveParts,
  endMove,
  holdMark,
  ignoreHeld,
  isBeingMoved,
  isMine,
  keepChanges,
  locking,
  lockMark,
  type MoveClient,
  openMoveClient,
  REFUSING,
  readMark,
  refuseWrites,
  releaseMark,
  undoMove,
  wasLeft,
  withMoveClient,
  writeMark,
} from './postgres-move-mark.ts'
import { createStoredTables, openPostgresMoveTarget, readSharedCarrier } from './postgres-move-target.ts'

export const postgresMoves = {
  nameOf: nameDatabase,
  openSource: openPostgresMoveSource,
  openTarget: openPostgresMoveTarget,
  readMark: (address) => withMoveClient(address, readMark),
  /** `watch`: the watch over the connections of the relay that uses the store. */
  clear: (address: string, nowMs: number, watch?: ServerWatch) =>
    withMoveClient(
      address,
      async (client) => {
        if (await wasLeft(client)) await endMove(client, MOVE_WAS_STOPPED, nowMs, () => wasLeft(client))
      },
      watch,
    ),
  release: (address, moveId) => withMoveClient(address, (client) => releaseMark(client, moveId)),
  holdUnused: (address) =>
    withMoveClient(address, async (client) => {
      const replicas = await countReplicas(client)
      return {
        usedBy: replicas === 0 ? null : `replicas: ${replicas}; one that was killed counts until its lease runs out`,
        release: () => undefined,
      }
    }),
  undo: (address, nowMs) =>
    withMoveClient(address, async (client) => {
      const mark = await readMark(client)
      if (mark?.state !== 'moved') return null
      await undoMove(client, MOVE_WAS_STOPPED, { name: nameDatabase(address), nowMs })
      return mark
    }),
} satisfies StoreMoves

const REST_MS = 50
/** The longest wait for the other replicas to stop writing. Recording is paused during the wait. */
const ALONE_MS_MAX = 4000
/** How long the switch's transaction may be idle while the last rows go to the new store. During that time nobody can write to the old store. */
const SWITCH_IDLE_MS_MAX = 5000
const STILL_WRITING = 'another replica has not stopped writing in time'
/** A replica takes numbers in runs of this length, so the last number in use may be anywhere in a run. */
const RUN = 10_000

/** Opens a database to copy from it while replicas write to it. */
async function openPostgresMoveSource(address: string, side: MoveSide): Promise<MoveSource> {
  const client = await openMoveClient(address)
  const { query } = client
  const counter = createCounterLock(address)
  const numberIn: NumberIn = async (text) => Number((await query<{ n: number | null }>(text)).rows[0]?.n ?? 0)
  return {
    ...createStoredTables(client),
    tables: MOVED_TABLES,
    announce: () => announce(client, side),
    async begin() {
      await locking(client, BESIDE_WRITERS, async () => {
        await holdMark(client, side)
        await dropMoveParts(client)
      })
      // Each table has a transaction to itself, so that a writer waits for the lock of one table only.
      for (const table of MOVED_TABLES)
        await locking(client, BESIDE_WRITERS, async () => {
          await holdMark(client, side)
          await keepChanges(client, table)
        })
    },
    count: (copied) => {
      const { name } = movedTable(copied)
      // Counting many rows takes long, so use the server's estimate for large tables.
      return numberIn(`select case when reltuples > 1000000 then reltuples else (select count(*) from ${name}) end as n
        from pg_class where oid = '${name}'::regclass`)
    },
    ...createKeptChanges(client, side),
    alone: createHoldOff(counter),
    // A switch would have to wait for autovacuums. This lock makes the server end them, and blocks no writer.
    prepareSwitch: () =>
      locking(client, ALONE, async () => {
        await client.query(`lock table ${REFUSING.join(', ')} in share update exclusive mode`)
      }).catch(ignoreHeld),
    pause: () => askToPause(client, side),
    numbers: async () => ({ ...(await lastNumbers(numberIn)), carrier: await readSharedCarrier(client) }),
    async seal(work, nowMs) {
      await untilAlone(client)
      // Until the commit, a lock keeps replicas from writing. After the commit, triggers do.
      const seal = () => lockAndSeal(client, work, { ...side, state: 'moved', atMs: nowMs })
      await locking(client, ALONE, seal, { idle_in_transaction_session_timeout: SWITCH_IDLE_MS_MAX })
    },
    // The move's connection may be lost, so use another one.
    abandon: (failure, nowMs) => withMoveClient(address, (own) => endMove(own, failure, nowMs, () => isMine(own, side))),
    async close() {
      await counter.close()
      await client.close()
    },
  }
}

async function announce(client: MoveClient, side: MoveSide): Promise<void> {
  await locking(client, BESIDE_WRITERS, async () => {
    await lockMark(client)
    if (await isBeingMoved(client)) throw new Error('store: another replica is moving it already.')
    await writeMark(client, { ...side, state: 'copying' })
  })
}

/** Waits until the replicas that were asked to pause have stopped. */
async function untilAlone(client: MoveClient): Promise<void> {
  for (let waitedMs = 0; (await countReplicas(client)) > 0; waitedMs += REST_MS) {
    if (waitedMs >= ALONE_MS_MAX) throw new Error(STILL_WRITING)
    await pause(REST_MS)
  }
}

type NumberIn = (text: string) => Promise<number>

async function lastNumbers(numberIn: NumberIn): Promise<Omit<StoreNumbers, 'carrier'>> {
  const lastOf = (sequence: string, step = 1) =>
    numberIn(`select case when is_called then last_value else last_value - ${step} end as n from ${sequence}`)
  const runOf = async (sequence: string) => {
    const first = await lastOf(sequence, RUN)
    return first === 0 ? 0 : first + RUN - 1
  }
  return {
    sequence: await numberIn("select value as n from counter where name = 'sequence'"),
    parcel: Math.max(await runOf('parcel_numbers'), await numberIn('select max(id) as n from parcel')),
    inbox: Math.max(await runOf('inbox_numbers'), await numberIn('select max(id) as n from inbox')),
    delivery: await lastOf('delivery_id_seq'),
    endpoint: await lastOf('endpoint_id_seq'),
    job: await lastOf('job_id_seq'),
  }
}

/** Locks the tables, runs `work`, and seals the store. An error of `work` is wrapped, so that `locking` does not try again. */
async function lockAndSeal(client: MoveClient, work: () => Promise<void>, mark: MoveMark): Promise<void> {
  await holdMark(client, mark)
  await client.query(`lock table ${REFUSING.join(', ')} in share row exclusive mode`)
  // A replica that seemed to be gone may have come back since.
  if ((await countReplicas(client)) > 0) throw new Error(STILL_WRITING)
  await client.query('set local lock_timeout = 0')
  await work().catch((cause: unknown) => {
    throw new Error(cause instanceof Error ? cause.message : String(cause), { cause })
  })
  // The triggers that record changes stay, because dropping them would wait for every reader.
  await refuseWrites(client)
  await writeMark(client, mark)
}

/**
 * Reads the keys of changed rows in order, each time from where the last read stopped. A read from the start would have to step over all
 * deleted keys that an open transaction may still see. But a change with a lower number may be committed late. So a read that finds nothing
 * begins at the start once more.
 */
function createKeptChanges(client: MoveClient, side: MoveSide): Pick<MoveSource, 'changes' | 'forget' | 'countChanges'> {
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

const WAIT_MS_MAX = 1000

interface Held {
  readonly letGo: () => void
  readonly ended: Promise<void>
}

/**
 * Makes a lock of the counter, which blocks all recording. No deadlock is possible, because every transaction that records locks the counter
 * last. The lock has a connection to itself, because it may be released while the move's connection is busy.
 */
function createCounterLock(address: string): WritersLock & { close(): Promise<void> } {
  let client: MoveClient | null = null
  let held: Held | null = null
  const close = async () => {
    const opened = client
    client = null
    await opened?.close()
  }
  return {
    async take() {
      client ??= await openMoveClient(address)
      try {
        held = await hold(client)
      } catch (error) {
        await close()
        throw error
      }
    },
    async release() {
      const { letGo, ended } = held ?? {}
      held = null
      letGo?.()
      // If the commit fails, closing the connection releases the lock.
      await ended?.catch(close)
    },
    close,
  }
}

async function hold({ query, transaction }: MoveClient): Promise<Held> {
  const taken = Promise.withResolvers<void>()
  const { promise, resolve: letGo } = Promise.withResolvers<void>()
  const ended = transaction({ lock_timeout: WAIT_MS_MAX }, async () => {
    await query("select from counter where name = 'sequence' for update")
    taken.resolve()
    await promise
  })
  ended.catch(taken.reject)
  await taken.promise
  return { letGo, ended }
}
