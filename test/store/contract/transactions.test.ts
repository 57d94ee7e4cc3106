import { describe, expect, test } from 'vitest'
import type { WriteTx } from '../../../src/flow/write-store.ts'
import { engines, openBareStore } from '../../support/engines.ts'

const bytes = (text: string) => Buffer.from(text)

describe.each(engines)('transactions on $name', (engine) => {
  test('what a transaction did is there after the store was opened anew', async () => {
    const { place, store } = await openBareStore(engine)
    await store.transaction((tx) => tx.saveSetting('a', bytes('1')))
    await store.close()
    const again = await engine.openWriteStore(place)
    expect(await again.transaction((tx) => tx.loadSetting('a'))).toEqual(bytes('1'))
    await again.close()
  })

  test('a transaction that rejects has done nothing, and the next one goes on', async () => {
    const { store } = await openBareStore(engine)
    const failing = store.transaction(async (tx) => {
      await tx.saveSetting('a', bytes('1'))
      throw new Error('planned')
    })
    await expect(failing).rejects.toThrow('planned')
    expect(await store.transaction((tx) => tx.loadSetting('a'))).toBeNull()
  })

  test('a savepoint that rejects undoes its own part only', async () => {
    const { store } = await openBareStore(engine)
    const kept = await store.transaction(async (tx) => {
      await tx.saveSetting('a', bytes('1'))
      const inner = store.savepoint(tx, async () => {
        await tx.saveSetting('a', bytes('2'))
        await tx.saveSetting('b', bytes('2'))
        throw new Error('planned')
      })
      await expect(inner).rejects.toThrow('planned')
      return [await tx.loadSetting('a'), await tx.loadSetting('b')]
    })
    expect(kept).toEqual([bytes('1'), null])
  })

  test('transactions begun at the same time lose no update of one another', async () => {
    const { store } = await openBareStore(engine)
    const increment = (tx: WriteTx) =>
      tx.loadSetting('n').then((value) => tx.saveSetting('n', bytes(String(Number(String(value ?? '0')) + 1))))
    await Promise.all(Array.from({ length: 50 }, () => store.transaction(increment)))
    expect(String(await store.transaction((tx) => tx.loadSetting('n')))).toBe('50')
  })

  test('sequences given at the same time are all different, and one that is given later is higher', async () => {
    const { store } = await openBareStore(engine)
    const given = await Promise.all(Array.from({ length: 50 }, () => store.transaction(async (tx) => await tx.nextSequence())))
    expect(new Set(given).size).toBe(50)
    expect(await store.transaction(async (tx) => await tx.nextSequence())).toBeGreaterThan(Math.max(...given))
  })

  test('no sequence is given twice over a restart', async () => {
    const { place, store } = await openBareStore(engine)
    const last = await store.transaction(async (tx) => tx.nextSequence())
    await store.close()
    const again = await engine.openWriteStore(place)
    expect(await again.transaction(async (tx) => tx.nextSequence())).toBeGreaterThan(last)
    await again.close()
  })

  test('a planned failure is not one of the store', async () => {
    const { store, reads } = await openBareStore(engine)
    expect(store.isStorageFailure(new Error('planned'))).toBe(false)
    await expect(reads.ping()).resolves.toBeUndefined()
  })
})
