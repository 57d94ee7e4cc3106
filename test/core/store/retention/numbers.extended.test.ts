import { describe, expect, test } from 'vitest'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { openAgingStore } from '../../../support/store/aging-store.ts'
import { engines } from '../../../support/store/engines.ts'
import { openErasures } from '../../../support/store/erasures.ts'
import { storedNumber } from '../../../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

const TABLES = ['parcel', 'inbox', 'delivery'] as const

describe.each(engines)('the numbers of parcels, pushes and deliveries on $name', (engine) => {
  test('are not given again after the newest rows are removed, or after a restart', async () => {
    const { path, writes, report, passDays, bodyOf, now } = await openAgingStore(engine)
    const { take } = await addEndpoint(writes, now())
    await report('70000001')
    await writes.unwatch({ identifier: '70000001' })
    await take()
    const first = await highestIn(path)
    await passDays(40)
    expect(await highestIn(path)).toEqual([0, 0, 0])
    await report('70000002')
    await writes.unwatch({ identifier: '70000002' })
    await take()
    const second = await highestIn(path)
    expectHigher(second, first)
    await passDays(40)
    expect(await highestIn(path)).toEqual([0, 0, 0])
    await writes.close()
    const again = await openStore(now(), engine, path)
    await again.record(incomingPush(bodyOf('70000003'), now()))
    expectHigher(await highestIn(path), second)
  })

  test('are not given again after an erasure of the newest rows', async () => {
    const { path, writes, push, record, forget, now } = await openErasures(engine)
    const { take } = await addEndpoint(writes, now())
    await push({ trackingIds: ['70000001'] })
    await record(incomingPush(Buffer.from('the parcel 70000001, but no event'), now()))
    await take()
    const before = await highestIn(path)
    await forget('70000001')
    expect(await highestIn(path)).not.toEqual(before)
    await push({ trackingIds: ['70000002'] })
    await take()
    expectHigher(await highestIn(path), before)
  })
})

async function highestIn(path: string): Promise<readonly number[]> {
  return await Promise.all(TABLES.map(async (table) => await storedNumber(path, `select coalesce(max(id), 0) from ${table}`)))
}

function expectHigher(now: readonly number[], before: readonly number[]): void {
  for (const [at, number] of now.entries()) expect(number).toBeGreaterThan(before[at] ?? 0)
}
