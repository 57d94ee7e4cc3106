import { expect, test } from 'vitest'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { LONG } from '../../../support/runner/long-form.ts'
import { seeded } from '../../../support/runner/seeded.ts'
import { openBusyStore } from '../../../support/store/busy-store.ts'
import { contentsOf, DIRECTIONS, movesOf, openMove, type Place, placeOf } from '../../../support/store/moving.ts'

const SEEDS = LONG ? 20 : 1

/** Opens a store with some random rows. */
async function openBusy(engine: Engine, seed: number) {
  const store = await placeOf(engine)
  const busy = await openBusyStore(engine, store.place, seed)
  for (let nth = 0; nth < 40; nth++) await busy.next()
  return { store, busy }
}

type Busy = Awaited<ReturnType<typeof openBusyStore>>

/** Advances a move, and changes the store between its batches. After `batchesMax` batches it abandons the move, as a kill does. */
async function moveBeside(busy: Busy, from: Place, to: Place, options: { readonly random: () => number; readonly batchesMax: number }) {
  await using opened = await openMove(from, to, { isSlow: true })
  let waited = 0
  for (let batch = 0; waited < 2; ) {
    if (batch >= options.batchesMax) return 'killed'
    const { step, done } = await opened.move.advance()
    // This step has only counted a table.
    if (step === 'copying' && done === 0) continue
    batch += 1
    if (step === 'waiting') waited += 1
    for (let things = Math.floor(options.random() * 2); things > 0; things--) await busy.next()
  }
  // The switch copies these last changes while writes are paused.
  for (let nth = 0; nth < 5; nth++) await busy.next()
  await busy.close()
  await opened.move.switchOver({ jobId: 0, nowMs: 0 })
  return 'moved'
}

test.each(DIRECTIONS.filter(({ from, to }) => LONG || from !== to))(
  `every row arrives from $name while the store changes: seeds: ${SEEDS}`,
  async ({ from, to }) => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { store, busy } = await openBusy(from, seed)
      const next = await placeOf(to)
      expect(await moveBeside(busy, store, next, { random: seeded(seed), batchesMax: 10_000 })).toBe('moved')
      const [old, moved] = [await contentsOf(store), await contentsOf(next)]
      expect([seed, moved.contents]).toEqual([seed, old.contents])
      expect(moved.numbers.sequence).toBe(old.numbers.sequence)
    }
  },
)

test.each(DIRECTIONS.filter(({ from, to }) => LONG || from !== to))(
  `a move from $name can begin again after several kills: seeds: ${SEEDS}`,
  async ({ from, to }) => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const random = seeded(100 + seed)
      const { store, busy } = await openBusy(from, 100 + seed)
      const next = await placeOf(to)
      for (let kill = 0; kill < 3; kill++) {
        await moveBeside(busy, store, next, { random, batchesMax: 1 + Math.floor(random() * 40) })
        // Do what a relay does when it starts again.
        if (random() < 0.5) await movesOf(from).clear(store.place, 0)
        await busy.next()
        await expect(to.openWriteStore(next.place)).rejects.toThrow('holds a part of')
      }
      expect(await moveBeside(busy, store, next, { random, batchesMax: 10_000 })).toBe('moved')
      const [old, moved] = [await contentsOf(store), await contentsOf(next)]
      expect([seed, moved.contents]).toEqual([seed, old.contents])
    }
  },
)
