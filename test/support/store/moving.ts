import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Engine } from '../../../src/core/store/contract.ts'
import { postgresMoves } from '../../../src/server/postgres/moving/postgres-moves.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { createStoreMove, type StoreMove } from '../../../src/upkeep/moving/move-store.ts'
import { sqliteMoves } from '../../../src/upkeep/moving/sqlite-moves.ts'
import type { MoveProgress, StoredRow } from '../../../src/upkeep/moving/store-move.rules.ts'
import { MOVED_TABLES, type MoveSource, type MoveTarget, type StoreMoves } from '../../../src/upkeep/moving/store-moves.rows.ts'
import { sqlite } from '../../../src/upkeep/sqlite-engine.ts'
import { temporaryFolder } from '../runner/temporary.ts'
import { newPlace } from './engines.ts'
import { copyDatabase, createLastingDatabase } from './postgres-database.ts'
import { openTestPool } from './postgres-pool.ts'
import { writeSeededStore } from './seeded-store.ts'
import { insertRows } from './stored-rows.ts'

export function movesOf(engine: Engine): StoreMoves {
  return engine.name === postgres.name ? postgresMoves : sqliteMoves
}

export interface Place {
  readonly engine: Engine
  readonly place: string
}

export async function placeOf(engine: Engine): Promise<Place> {
  return { engine, place: await newPlace(engine) }
}

/** Rows of tables that a seeded store leaves empty. */
const FURTHER_ROWS = [
  "insert into report_evidence (name, id, day, parcel_id) values ('outage', 1, 0, 0)",
  'insert into watchdog_due (parcel_id, due_at_ms, is_open) values (1, 1, 1)',
  "insert into watchdog_breach (parcel_id, rule, since_ms, is_checked, told_at_ms) values (1, 'no-scan', 1, 1, 1)",
]

/** A store that is made once, when it is first needed, and copied for each test. */
const seededFiles = once(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'parcel-relay-seeded-'))
  try {
    const path = join(folder, 'relay.db')
    await writeSeededStore(path)
    insertRows(path, FURTHER_ROWS)
    return readdirSync(folder).map((name) => [name.slice('relay.db'.length), readFileSync(join(folder, name))] as const)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
const seededDatabase = once(async () => {
  const url = await createLastingDatabase()
  await writeSeededStore(url, postgres)
  const pool = openTestPool(url)
  for (const row of FURTHER_ROWS) await pool.query(row)
  await pool.end()
  return url
})

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null
  return () => {
    made ??= make()
    return made
  }
}

/** A seeded store, with a row or more in every table. */
export async function seededPlace(engine: Engine): Promise<Place> {
  if (engine.name === postgres.name) return { engine, place: await copyDatabase(await seededDatabase()) }
  const place = join(temporaryFolder(), 'relay.db')
  for (const [ending, bytes] of await seededFiles()) writeFileSync(place + ending, bytes)
  return { engine, place }
}

export const DIRECTIONS = [sqlite, postgres].flatMap((from) =>
  [sqlite, postgres].map((to) => ({ name: `${from.name} to ${to.name}`, from, to })),
)

export interface OpenMove extends AsyncDisposable {
  readonly source: MoveSource
  readonly target: MoveTarget
  readonly move: StoreMove
}

/** Returns the address of a store as the other store of the move keeps it. A relay would encrypt it. */
const addressOf = ({ engine, place }: Place) => (engine.name === postgres.name ? place : `sqlite:${place}`)

let moves = 0
const BEGUN_AT_MS = Date.UTC(2026, 2, 31)

/** Opens both stores of a move, and claims the new one. `isSlow`: each `advance` does only one batch. */
export async function openMove(from: Place, to: Place, { isSlow } = { isSlow: false }): Promise<OpenMove> {
  let turns = 0
  const monotonic = () => (isSlow ? turns++ * 1000 : performance.now())
  const common = { moveId: `move-${moves++}`, atMs: BEGUN_AT_MS, replicaId: 0 }
  const fromName = movesOf(from.engine).nameOf(from.place)
  const toName = movesOf(to.engine).nameOf(to.place)
  const source = await movesOf(from.engine).openSource(from.place, { ...common, peer: toName, address: addressOf(to) })
  await source.announce()
  try {
    const target = await movesOf(to.engine).openTarget(to.place, { ...common, peer: fromName, address: addressOf(from) })
    try {
      await target.claim()
    } catch (error) {
      await target.close()
      throw error
    }
    return {
      source,
      target,
      move: createStoreMove({ source, target, monotonic }),
      async [Symbol.asyncDispose]() {
        await source.close()
        await target.close()
      },
    }
  } catch (error) {
    await source.close()
    throw error
  }
}

/** Advances a move until it waits for its switch. Returns its steps until then. */
export async function untilWaiting(move: StoreMove): Promise<readonly MoveProgress['step'][]> {
  const seen: MoveProgress['step'][] = []
  for (;;) {
    const { step, done, total } = await move.advance()
    expect(done).toBeLessThanOrEqual(total)
    if (seen.at(-1) !== step) seen.push(step)
    if (step === 'waiting') return seen
  }
}

/** Moves a store that nobody writes to. */
export async function moveStore(from: Place, to: Place): Promise<void> {
  await using opened = await openMove(from, to)
  await untilWaiting(opened.move)
  await opened.move.switchOver({ jobId: 0, nowMs: Date.UTC(2026, 3, 1) })
}

/** Returns every row of a store, by table, and the last numbers that the store has used. */
export async function contentsOf({ engine, place }: Place) {
  const source = await movesOf(engine).openSource(place, { moveId: '', peer: '', address: '', atMs: 0, replicaId: 0 })
  try {
    const contents = new Map<string, readonly StoredRow[]>()
    for (const table of MOVED_TABLES) contents.set(table.name, await source.page(table, { after: null, upTo: null, limit: 1_000_000 }))
    return { contents, numbers: await source.numbers() }
  } finally {
    await source.close()
  }
}
