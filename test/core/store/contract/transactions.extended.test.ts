import { describe, expect, test } from 'vitest'
import { reserveEndpoint } from '../../../../src/core/store/delivery/endpoints.ts'
import { saveSetting } from '../../../../src/core/store/settings.ts'
import type { WriteTx } from '../../../../src/core/store/write-store.ts'
import { engines, openBareStore } from '../../../support/store/engines.ts'
import { storedRows } from '../../../support/store/stored-rows.ts'

const bytes = (text: string) => Buffer.from(text)
/** Queues an event without a parcel, which takes the next sequence. */
const queueOne = (tx: WriteTx, endpointId: string) => tx.queueComposed({ endpointId, parcelId: 0, body: bytes('{}'), nowMs: 0 })
const sequencesIn = async (place: string) =>
  (await storedRows<{ sequence: number }>(place, 'select sequence from delivery order by sequence')).map(({ sequence }) => sequence)

describe.each(engines)('transactions on $name', (engine) => {
  test('the changes of a transaction are still stored when the store is opened again', async () => {
    const { place, store } = await openBareStore(engine)
    await store.transaction((tx) => saveSetting(tx, 'a', bytes('1')))
    await store.close()
    const again = await engine.openWriteStore(place)
    expect(await again.transaction((tx) => tx.loadSetting('a'))).toEqual(bytes('1'))
    await again.close()
  })

  test('a transaction that rejects changes nothing, and the next one works', async () => {
    const { store } = await openBareStore(engine)
    const failing = store.transaction(async (tx) => {
      await saveSetting(tx, 'a', bytes('1'))
      throw new Error('planned')
    })
    await expect(failing).rejects.toThrow('planned')
    expect(await store.transaction((tx) => tx.loadSetting('a'))).toBeNull()
  })

  test('transactions begun at the same time lose no update of one another', async () => {
    const { store } = await openBareStore(engine)
    const increment = (tx: WriteTx) =>
      tx.loadSetting('n').then((value) => saveSetting(tx, 'n', bytes(String(Number(String(value ?? '0')) + 1))))
    await Promise.all(Array.from({ length: 50 }, () => store.transaction(increment)))
    expect(String(await store.transaction((tx) => tx.loadSetting('n')))).toBe('50')
  })

  test('sequences taken at the same time are all different, and one taken later is higher', async () => {
    const { place, store } = await openBareStore(engine)
    const endpointId = await store.transaction((tx) => reserveEndpoint(tx, 0))
    await Promise.all(Array.from({ length: 50 }, () => store.transaction((tx) => queueOne(tx, endpointId))))
    const given = await sequencesIn(place)
    expect(new Set(given).size).toBe(50)
    await store.transaction((tx) => queueOne(tx, endpointId))
    expect((await sequencesIn(place)).at(-1)).toBeGreaterThan(Math.max(...given))
  })

  test('no sequence is given twice, even after a restart', async () => {
    const { place, store } = await openBareStore(engine)
    const endpointId = await store.transaction((tx) => reserveEndpoint(tx, 0))
    await store.transaction((tx) => queueOne(tx, endpointId))
    await store.close()
    const again = await engine.openWriteStore(place)
    await again.transaction((tx) => queueOne(tx, endpointId))
    const [first, second] = await sequencesIn(place)
    expect(second).toBeGreaterThan(first ?? Number.POSITIVE_INFINITY)
    await again.close()
  })

  test('an error of the caller does not count as a failure of the store', async () => {
    const { store, reads } = await openBareStore(engine)
    expect(store.isStorageFailure(new Error('planned'))).toBe(false)
    await expect(reads.ping()).resolves.toBeUndefined()
  })
})
