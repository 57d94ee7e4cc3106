import { expect, test } from 'vitest'
import { postgresMoves } from '../../../src/server/postgres/moving/postgres-moves.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { sqliteMoves } from '../../../src/upkeep/moving/sqlite-moves.ts'
import { listLeftStores } from '../../../src/upkeep/moving/store-moves.rows.ts'
import { sqlite } from '../../../src/upkeep/sqlite-engine.ts'
import { DAY_MS, NOON } from '../../support/runner/constants.ts'
import { moveStore, type Place, placeOf } from '../../support/store/moving.ts'
import { changeStoredRows, storedRows } from '../../support/store/stored-rows.ts'
import { openStore } from '../../support/store/write-side.ts'
import { expectEveryRowMoved } from './every-row-moved.ts'

test('a store moves from sqlite to postgres with every row and every number', () => expectEveryRowMoved(sqlite, postgres))

test('counts, operator events and the audit trail move both ways and continue', async () => {
  const [first, second, third] = [await placeOf(sqlite), await placeOf(postgres), await placeOf(sqlite)]
  const atMs = Date.UTC(2026, 2, 30, 12)
  const by = { kind: 'app', name: 'Jörg "J"', address: '10.0.0.1' } as const
  const flush = {
    by: 'relay',
    number: 1,
    additions: [{ kind: 'pushes', fromMs: atMs, counts: { recorded: 2, 'odd "name" ?': 1 } }],
  } as const
  const operate = async ({ engine, place }: Place, number: number) => {
    const { writes, reads } = await openStore(atMs, engine, place)
    // Repeat the last flush, because its answer may have been lost in the move.
    for (const one of [number - 1, number]) if (one > 0) await writes.addTallies({ ...flush, number: one })
    await writes.recordOperatorEvent({ event: 'credentials_refused' }, atMs + number)
    await writes.recordAction({
      atMs: atMs + number,
      by,
      action: 'endpoint.tested',
      target: { kind: 'endpoint', id: '1' },
      detail: { number },
    })
    const span = { kind: 'pushes', fromMs: 0, toMs: atMs * 2 } as const
    const shown = {
      hours: await reads.listTallies({ span: 'hour', ...span }),
      days: await reads.listTallies({ span: 'day', ...span }),
      events: await reads.listOperatorEvents({ event: null, fromMs: null, toMs: null, before: null, limit: 10 }),
      actions: (await reads.listActions({ before: null, limit: 10 })).actions,
    }
    await writes.close()
    return shown
  }
  const before = await operate(first, 1)
  await moveStore(first, second)
  const between = await operate(second, 2)
  await moveStore(second, third)
  const after = await operate(third, 3)
  expect([before, between, after].map(({ hours, days }) => [hours[0]?.counts, days[0]?.counts])).toEqual(
    [1, 2, 3].map((times) => Array.from({ length: 2 }, () => ({ recorded: 2 * times, 'odd "name" ?': times }))),
  )
  expect([between.events.slice(1), after.events.slice(1)]).toEqual([before.events, between.events])
  expect([between.actions.slice(1), after.actions.slice(1)]).toEqual([before.actions, between.actions])
  expect(after.actions.map(({ detail }) => detail)).toEqual([{ number: 3 }, { number: 2 }, { number: 1 }])
})

test('today’s calls, a pause and refused credentials are kept by a move to either engine', async () => {
  const day = Math.floor(Date.now() / DAY_MS)
  const untilMs = Date.now() + 600_000
  const refusal = { tries: 3, untilMs, mark: { salt: 'c2FsdA==', digest: 'ZGk=' } }
  const memory = { atMs: Date.now(), days: [{ day, calls: 17 }], pausedUntilMs: untilMs, tokenPausedUntilMs: null, refusal }
  const [first, second, third] = [await placeOf(sqlite), await placeOf(postgres), await placeOf(sqlite)]
  const before = await openStore(Date.now(), sqlite, first.place)
  await before.writes.rememberCarrier(memory)
  await before.writes.close()
  await moveStore(first, second)
  const [budget] = await storedRows<{ days: object }>(second.place, 'select days from carrier_budget')
  expect(budget).toEqual({ days: { [day]: 17 } })
  await changeStoredRows(second.place, `update carrier_budget set days = '{"${day}": 20}'`)
  await moveStore(second, third)
  const after = await openStore(Date.now(), sqlite, third.place)
  const kept = await after.writes.carrierMemory()
  expect(kept).toMatchObject({ days: [{ day, calls: 20 }], tokenPausedUntilMs: null, refusal: { tries: 3, mark: refusal.mark } })
  for (const ms of [kept?.pausedUntilMs, kept?.refusal?.untilMs]) expect(Math.abs((ms ?? 0) - untilMs)).toBeLessThan(1000)
})

test('a store remembers the stores that moves left behind, until one is used again', async () => {
  const [first, second, third] = [await placeOf(sqlite), await placeOf(postgres), await placeOf(sqlite)]
  await (await openStore(NOON, sqlite, first.place)).writes.close()
  const leftBy = async ({ engine, place }: Place) => {
    const reads = engine.openReadStore(place)
    const names = (await listLeftStores(reads.session)).map(({ name }) => name)
    await reads.close()
    return names
  }
  const database = postgresMoves.nameOf(second.place)
  await moveStore(first, second)
  expect(await leftBy(second)).toEqual([first.place])
  await moveStore(second, third)
  expect(await leftBy(third)).toEqual([first.place, database])
  // When the second store is used again, the third is left behind with its data.
  await postgresMoves.undo(second.place, NOON)
  expect(await leftBy(second)).toEqual([first.place, third.place])
  await sqliteMoves.undo(first.place, NOON)
  expect(await leftBy(first)).toEqual([database])
})
