import { describe, expect, test } from 'vitest'
import { saveSetting } from '../../../../src/core/store/settings.ts'
import { listRestores } from '../../../../src/upkeep/restore/restores.rows.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines, newPlace } from '../../../support/store/engines.ts'
import { storedNumber } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

const restoredAt = (atMs: number) => JSON.stringify([{ atMs, backup: 'a', madeAtMs: 0, from: 0, to: 1e9, delivered: 3, isTold: false }])

describe.each(engines)('after a restore on $name', (engine) => {
  test.each([
    ['an entry from before the restore is not a missed push', 1, 0],
    ['an entry from after the restore is a missed push', -1, 1],
  ])('%s', async (_, sinceMs, expected) => {
    const place = await newPlace(engine)
    const eventAtMs = NOON - 60_000
    const bare = await engine.openWriteStore(place)
    await bare.transaction((tx) => saveSetting(tx, 'restores', Buffer.from(restoredAt(eventAtMs + sinceMs))))
    await bare.close()
    const { poll } = await openStore(NOON - 120_000, engine, place)
    await poll({ statuses: [{ eventTimestamp: new Date(NOON - 300_000).toISOString() }] })
    const statuses = [eventAtMs, NOON - 300_000].map((atMs) => ({ eventTimestamp: new Date(atMs).toISOString() }))
    await poll({ statuses })
    expect(await storedNumber(place, 'select count(*) from expected_push')).toBe(expected)
  })

  test('operators get one event about a restore', async () => {
    const place = await newPlace(engine)
    const bare = await engine.openWriteStore(place)
    await bare.transaction((tx) => saveSetting(tx, 'restores', Buffer.from(restoredAt(NOON))))
    await bare.close()
    const { writes, reads } = await openStore(NOON, engine, place)
    expect([await writes.tellRestores({ nowMs: NOON }), await writes.tellRestores({ nowMs: NOON })]).toEqual([1, 0])
    const events = await reads.listOperatorEvents({ event: 'store_restored', fromMs: null, toMs: null, before: null, limit: 10 })
    expect(events).toMatchObject([{ detail: { backup: 'a', lastSequence: 0, nextSequence: 1e9, delivered: 3 } }])
    expect(await listRestores(reads.session)).toMatchObject([{ backup: 'a', isTold: true }])
  })
})
