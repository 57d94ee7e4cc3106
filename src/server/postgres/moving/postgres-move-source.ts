import { setTimeout as pause } from 'node:timers/promises'
import { MOVED_TABLES, movedTable } from '../../../upkeep/moving/moved-tables.rows.ts'
import type { StoreNumbers } from '../../../upkeep/moving/store-move.rules.ts'
import { createHoldOff, type MoveMark, type MoveSide, type MoveSource } from '../../../upkeep/moving/store-moves.rows.ts'
import { createCounterLock } from './postgres-counter-lock.ts'
import { createKeptChanges } from './postgres-kept-changes.ts'
import { readSharedCarrier } from './postgres-move-carrier.ts'
import { type MoveClient, openMoveClient, withMoveClient } from './postgres-move-client.ts'
import { endMove } from './postgres-move-end.ts'
import { ALONE, BESIDE_WRITERS, ignoreHeld, locking } from './postgres-move-locks.ts'
import {
  askToPause,
  countReplicas,
  dropMoveParts,
  holdMark,
  isBeingMoved,
  isMine,
  keepChanges,
  lockMark,
  REFUSING,
  refuseWrites,
  writeMark,
} from './postgres-move-mark.ts'
import { createStoredTables } from './postgres-stored-tables.ts'

const REST_MS = 50
/** The longest wait for the other replicas to stop writing. Recording is paused during the wait. */
const ALONE_MS_MAX = 4000
/** How long the switch's transaction may be idle while the last rows go to the new store. During that time nobody can write to the old store. */
const SWITCH_IDLE_MS_MAX = 5000
const STILL_WRITING = 'another replica has not stopped writing in time'
/** A replica takes numbers in runs of this length, so the last number in use may be anywhere in a run. */
const RUN = 10_000

/** Opens a database to copy from it while replicas write to it. */
export async function openPostgresMoveSource(address: string, side: MoveSide): Promise<MoveSource> {
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
