import { expect } from 'vitest'
import type { Engine } from '../../../src/core/store/contract.ts'
import type { StoredRow } from '../../../src/upkeep/moving/store-move.rules.ts'
import { LEFT_STORES, MOVED_TABLES } from '../../../src/upkeep/moving/store-moves.rows.ts'
import { contentsOf, moveStore, placeOf, seededPlace } from '../../support/store/moving.ts'

/** Expects that a store with rows in every table arrives complete on another engine, or at another address of the same engine. */
export async function expectEveryRowMoved(from: Engine, to: Engine): Promise<void> {
  const [old, next] = [await seededPlace(from), await placeOf(to)]
  const before = await contentsOf(old)
  for (const { name } of MOVED_TABLES) expect([name, before.contents.get(name)?.length]).not.toEqual([name, 0])
  await moveStore(old, next)
  const after = await contentsOf(next)
  dropLeftStores(after.contents)
  expect(after.contents).toEqual(before.contents)
  expect(after.numbers.sequence).toBe(before.numbers.sequence)
  for (const name of ['parcel', 'inbox', 'endpoint', 'job'] as const)
    expect(after.numbers[name]).toBeGreaterThanOrEqual(before.numbers[name])
}

/** Removes the setting that lists the stores that moves have left behind. Only the store that a move has filled has this setting. */
export function dropLeftStores(contents: Map<string, readonly StoredRow[]>): void {
  const settings = contents.get('setting') ?? []
  expect(settings.map(([name]) => name)).toContain(LEFT_STORES)
  contents.set(
    'setting',
    settings.filter(([name]) => name !== LEFT_STORES),
  )
}
