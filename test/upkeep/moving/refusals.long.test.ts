import { expect, test, vi } from 'vitest'
import { isStorageFailure } from '../../../src/core/domain/errors.ts'
import { openPostgresMoveTarget } from '../../../src/server/postgres/moving/postgres-move-target.ts'
import { postgresMoves } from '../../../src/server/postgres/moving/postgres-moves.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { createStoreMove } from '../../../src/upkeep/moving/move-store.ts'
import { listLeftStores } from '../../../src/upkeep/moving/store-moves.rows.ts'
import { sqlite } from '../../../src/upkeep/sqlite-engine.ts'
import { pushBody } from '../../support/history/builders.ts'
import { startSilentAfterGreeting } from '../../support/network/silent-after-greeting.ts'
import { engines } from '../../support/store/engines.ts'
import { contentsOf, DIRECTIONS, moveStore, movesOf, openMove, placeOf, seededPlace, untilWaiting } from '../../support/store/moving.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'
import { openTestPool } from '../../support/store/postgres-pool.ts'
import { changeStoredRows, storedBodies, storedNumber } from '../../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../../support/store/write-side.ts'

const NOW_MS = Date.UTC(2026, 2, 1)

test.each(engines)('a moved store on $name names the new store, and its move can be undone', async (engine) => {
  const [old, next] = [await seededPlace(engine), await placeOf(engine)]
  const before = await contentsOf(old)
  await moveStore(old, next)
  await expect(engine.openWriteStore(old.place)).rejects.toThrow(
    `was moved to ${movesOf(engine).nameOf(next.place)} at 2026-04-01T00:00:00.000Z and is out of use`,
  )
  await expect(changeStoredRows(old.place, 'delete from parcel')).rejects.toThrow('the store was moved')
  expect(await movesOf(engine).undo(old.place, 0)).toMatchObject({
    state: 'moved',
    address: expect.stringContaining(next.place),
    atMs: Date.UTC(2026, 3, 1),
  })
  const store = await engine.openWriteStore(old.place)
  await store.close()
  const reads = engine.openReadStore(old.place)
  const left = await listLeftStores(reads.session)
  await reads.close()
  expect(left.map(({ name }) => name)).toEqual([movesOf(engine).nameOf(next.place)])
  // The old store is unchanged, except that it now lists the new store as left behind.
  await changeStoredRows(old.place, "delete from setting where name = 'left-stores'")
  expect(await contentsOf(old)).toEqual(before)
  expect(await movesOf(engine).undo(old.place, 0)).toBeNull()
})

test.each(engines)('a move to a store on $name that contains data is refused', async (engine) => {
  const [old, taken] = [await seededPlace(engine), await seededPlace(engine)]
  const before = await contentsOf(taken)
  await expect(openMove(old, taken)).rejects.toThrow('is not empty (it has rows in')
  expect(await contentsOf(taken)).toEqual(before)
})

test.each(engines)('a move to a store on $name that gets data after the first check is refused', async (engine) => {
  const next = await placeOf(engine)
  const side = { moveId: 'late', peer: '', address: '', atMs: 0, replicaId: 0 }
  const target = await movesOf(engine).openTarget(next.place, side)
  await changeStoredRows(next.place, "insert into parcel_status (status) values ('Created')")
  await expect(target.claim()).rejects.toThrow('is not empty (it has rows in parcel_status)')
  await target.close()
  expect(await storedNumber(next.place, 'select count(*) from parcel_status')).toBe(1)
})

test.each(engines)('a new store on $name takes another move only after its first move has ended', async (engine) => {
  const [first, second, next] = [await seededPlace(sqlite), await seededPlace(sqlite), await placeOf(engine)]
  {
    await using opened = await openMove(first, next)
    await untilWaiting(opened.move)
    await opened.target.complete(await opened.source.numbers(), { jobId: 0, done: 0, nowMs: 0 })
    await expect(openMove(second, next)).rejects.toThrow(`another move has begun to fill ${movesOf(engine).nameOf(next.place)}`)
  }
  // The server needs a moment to end a connection, so try repeatedly.
  await vi.waitFor(() => moveStore(second, next), { timeout: 60_000 })
  await expect(openMove(first, next)).rejects.toThrow('is not empty')
})

test('a move to a database of another program is refused', async () => {
  const [old, other] = [await seededPlace(sqlite), await placeOf(sqlite)]
  await (await sqlite.openWriteStore(other.place)).close()
  await changeStoredRows(other.place, 'create table invoice (id integer primary key)')
  await changeStoredRows(other.place, 'insert into invoice values (1)')
  await expect(openMove(old, other)).rejects.toThrow('is not empty (it has rows in invoice)')
})

test('a replica that hangs during a switch loses its locks after the idle timeout', async () => {
  const [old, next] = [await seededPlace(postgres), await placeOf(sqlite)]
  await using opened = await openMove(old, next)
  await untilWaiting(opened.move)
  const [holding, goneOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const sealed = opened.source.seal(async () => {
    holding.resolve()
    await goneOn.promise
  }, NOW_MS)
  await holding.promise
  await changeStoredRows(old.place, "insert into parcel_status (status) values ('written meanwhile')")
  goneOn.resolve()
  await expect(sealed).rejects.toThrow('the connection to the database was lost')
  await (await postgres.openWriteStore(old.place)).close()
})

test.each(engines)('an abandoned move from $name leaves nothing behind', async (engine) => {
  const [old, next] = [await seededPlace(engine), await placeOf(engine)]
  const parts = () =>
    engine.name === postgres.name
      ? storedNumber(old.place, "select count(*) from pg_class where relname like 'mov%'")
      : storedNumber(old.place, "select count(*) from sqlite_schema where name like 'mov%'")
  await using opened = await openMove(old, next)
  await opened.move.advance()
  expect(await parts()).toBeGreaterThan(10)
  await opened.source.abandon('', 0)
  expect(await parts()).toBe(0)
})

test.each(engines)('a copy on $name that differs is found before the switch, and the old store stays in use', async (engine) => {
  const [old, next] = [await seededPlace(sqlite), await placeOf(engine)]
  await using opened = await openMove(old, next, { isSlow: true })
  while ((await opened.move.advance()).step !== 'verifying');
  expect(await changeStoredRows(next.place, "update delivery set reason = 'changed' where id = 3")).toBe(1)
  await expect(untilWaiting(opened.move).then(() => opened.move.switchOver({ jobId: 0, nowMs: 0 }))).rejects.toThrow(
    'the copy differs in 1 rows, the first in delivery',
  )
  await opened.source.abandon('', 0)
  await (await sqlite.openWriteStore(old.place)).close()
  await expect(engine.openWriteStore(next.place)).rejects.toThrow(/holds a part of|is already running/)
})

test('a replica does not clear the move of a live replica, or a switch that has just begun', async () => {
  const [old, next] = [await seededPlace(postgres), await placeOf(sqlite)]
  const lease = '(extract(epoch from clock_timestamp()) * 1000)::bigint + 60000'
  await changeStoredRows(
    old.place,
    `insert into replica (id, name, version, fingerprint, endpoints, keys, started_at_ms, seen_at_ms, until_ms) values (0, 'a/1', '1', '', '[]', '[]', 0, 0, ${lease})`,
  )
  await using opened = await openMove(old, next)
  await untilWaiting(opened.move)
  const state = async () => {
    await postgresMoves.clear(old.place, 0)
    return (await postgresMoves.readMark(old.place))?.state ?? null
  }
  expect(await state()).toBe('copying')
  await expect(openMove(old, await placeOf(sqlite))).rejects.toThrow('another replica is moving it already')
  await opened.move.pause()
  await changeStoredRows(old.place, 'delete from replica')
  expect(await state()).toBe('pausing')
  await changeStoredRows(old.place, 'update moving set paused_at_ms = paused_at_ms - 30000')
  expect(await state()).toBeNull()
  await expect(opened.move.switchOver({ jobId: 0, nowMs: 0 })).rejects.toThrow()
  await (await postgres.openWriteStore(old.place)).close()
})

test('a store stays moved if its switch ends while another replica clears leftovers', async () => {
  const [old, next] = [await seededPlace(postgres), await placeOf(sqlite)]
  await using opened = await openMove(old, next)
  await untilWaiting(opened.move)
  await opened.move.pause()
  const holding = await openTestPool(old.place).connect()
  // The other replica reads that a move is under way, and then waits for the lock on the table of replicas.
  await holding.query('begin; lock table replica')
  const cleared = postgresMoves.clear(old.place, NOW_MS)
  const waits = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
  await vi.waitFor(async () => expect(await storedNumber(old.place, `select count(*) from (${waits}) as waiting`)).toBe(1), {
    timeout: 60_000,
  })
  await changeStoredRows(old.place, "update moving set state = 'moved'")
  await holding.query('rollback')
  holding.release()
  await cleared
  expect((await postgresMoves.readMark(old.place))?.state).toBe('moved')
  await opened.source.abandon('too late', NOW_MS)
  expect((await postgresMoves.readMark(old.place))?.state).toBe('moved')
})

test.each(engines)('a move from $name is complete even if the new store is lost right after the switch', async (engine) => {
  const [old, next] = [await seededPlace(engine), await placeOf(sqlite)]
  await using opened = await openMove(old, next)
  const target: typeof opened.target = { ...opened.target, release: async () => Promise.reject(new Error('the connection was lost')) }
  const move = createStoreMove({ source: opened.source, target, monotonic: () => performance.now() })
  await untilWaiting(move)
  await move.switchOver({ jobId: 0, nowMs: NOW_MS })
  expect((await movesOf(engine).readMark(old.place))?.state).toBe('moved')
})

test('a move whose job was cancelled just before the switch does not switch', async () => {
  for (const { from, to } of DIRECTIONS) {
    const [old, next] = [await seededPlace(from), await placeOf(to)]
    await using opened = await openMove(old, next)
    await untilWaiting(opened.move)
    const job =
      "insert into job (id, kind, state, task, started_by, done, created_at_ms, ended_at_ms) values (7, 'move', 'cancelled', '{}', 'admin', 0, 0, 1)"
    await changeStoredRows(old.place, job)
    await expect(opened.move.switchOver({ jobId: 7, nowMs: NOW_MS })).rejects.toThrow('The move was cancelled before its switch')
    expect((await movesOf(from).readMark(old.place))?.state).not.toBe('moved')
  }
})

test('an abandoned move does not wait for a long reader, and is cleared later', async () => {
  const [old, next] = [await seededPlace(postgres), await placeOf(sqlite)]
  await using opened = await openMove(old, next)
  await untilWaiting(opened.move)
  await opened.move.pause()
  const reading = await openTestPool(old.place).connect()
  await reading.query('begin; select * from attempt')
  await expect(opened.source.abandon('no more', NOW_MS)).rejects.toThrow('lock timeout')
  expect(await storedNumber(old.place, "select count(*) from counter where name = 'moving'")).toBe(0)
  await using again = await openMove(old, await placeOf(sqlite))
  await again.source.abandon('neither', NOW_MS).catch(() => undefined)
  await reading.query('rollback')
  reading.release()
  await postgresMoves.clear(old.place, NOW_MS)
  expect(await storedNumber(old.place, "select count(*) from pg_trigger where tgname like 'moving%'")).toBe(0)
  expect(await postgresMoves.readMark(old.place)).toBeNull()
})

test('a move that another replica cleared does not touch the rows of the next move', async () => {
  const [old, next, other] = [await seededPlace(postgres), await placeOf(sqlite), await placeOf(sqlite)]
  await using given = await openMove(old, next)
  await untilWaiting(given.move)
  await postgresMoves.clear(old.place, NOW_MS)
  await using going = await openMove(old, other)
  await untilWaiting(going.move)
  await changeStoredRows(old.place, "insert into parcel_status (status) values ('new')")
  await expect(given.move.advance()).rejects.toThrow('another replica has given the move up')
  await going.move.switchOver({ jobId: 0, nowMs: NOW_MS })
  expect(await storedNumber(other.place, "select count(*) from parcel_status where status = 'new'")).toBe(1)
})

test('a switch waits for replicas that still write, and is abandoned if one does not stop', async () => {
  const [old, next] = [await seededPlace(postgres), await placeOf(sqlite)]
  await using opened = await openMove(old, next)
  await untilWaiting(opened.move)
  await opened.move.pause()
  await changeStoredRows(
    old.place,
    `insert into replica (id, name, version, fingerprint, endpoints, keys, started_at_ms, seen_at_ms, until_ms) values (9, 'a/1', '1', '', '[]', '[]', 0, 0, ${9e15})`,
  )
  await expect(opened.move.switchOver({ jobId: 0, nowMs: 0 })).rejects.toThrow('another replica has not stopped writing in time')
  await changeStoredRows(old.place, 'delete from replica')
  await opened.move.switchOver({ jobId: 0, nowMs: 0 })
  expect((await postgresMoves.readMark(old.place))?.state).toBe('moved')
})

test('replicas that record while a database is moved lose no acknowledged push', async () => {
  const [old, next] = [await placeOf(postgres), await placeOf(sqlite)]
  const replicas = await Promise.all([1, 2, 3].map(() => openStore(NOW_MS, postgres, old.place)))
  const acknowledged: string[] = []
  const failures: unknown[] = []
  let made = 0
  const record = async ({ writes }: (typeof replicas)[number]) => {
    while (failures.length < 3) {
      const body = pushBody({ trackingIds: [`77${made++ % 7}00`], location: `Place ${made}` })
      await writes.record([incomingPush(body, NOW_MS)]).then(
        () => acknowledged.push(body.toString()),
        (error: unknown) => failures.push(error),
      )
    }
  }
  const recording = replicas.map(record)
  await using opened = await openMove(old, next)
  await untilWaiting(opened.move)
  await opened.move.switchOver({ jobId: 0, nowMs: NOW_MS })
  await Promise.all(recording)
  const arrived = await storedBodies(next.place)
  expect(acknowledged.length).toBeGreaterThan(20)
  expect(acknowledged.filter((body) => !arrived.has(body))).toEqual([])
  expect(failures.filter((error) => !isStorageFailure(error))).toEqual([])
})

test('a move to a server that accepts a connection and then stays silent is refused', async () => {
  const silent = await startSilentAfterGreeting((await createDatabase('nothing')).url)
  const side = { moveId: 'late', peer: '', address: '', atMs: 0, replicaId: 0 }
  await expect(openPostgresMoveTarget(silent.url, side, 50)).rejects.toThrow(`no PostgreSQL answers at ${postgresMoves.nameOf(silent.url)}`)
})
