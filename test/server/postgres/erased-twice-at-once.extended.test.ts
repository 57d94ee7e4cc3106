import { expect, test } from 'vitest'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { NOON } from '../../support/runner/constants.ts'
import { tablesThatHold } from '../../support/store/all-rows.ts'
import { openErasures } from '../../support/store/erasures.ts'
import { storedNumber } from '../../support/store/stored-rows.ts'
import { incomingPush } from '../../support/store/write-side.ts'

const at = (seconds: number) => new Date(NOON + seconds * 1000).toISOString()

async function openThree() {
  const one = await openErasures(postgres)
  const relays = [one, await openErasures(postgres, one.path), await openErasures(postgres, one.path)] as const
  for (const { writes } of relays) await writes.useTombstoneKey(Buffer.alloc(32, 7))
  const deadlocks = () => storedNumber(one.path, 'select deadlocks from pg_stat_database where datname = current_database()')
  return { relays, path: one.path, deadlocks }
}

const unrecorded = (identifier: string) => incomingPush(Buffer.from(JSON.stringify({ trackingIds: [identifier] })), NOON)

test('overlapping lists erased at three relays beside joins meet no deadlock and leave nothing', async () => {
  const { relays, path, deadlocks } = await openThree()
  const [one, other, third] = relays
  const all: string[] = []
  for (let round = 0; round < 10; round++) {
    // A list of more than 20 identifiers takes several transactions.
    const parcels = Array.from({ length: 24 }, (_, nth) => ({ first: `GONE${round}A${1000 + nth}`, second: `GONE${round}B${9000 - nth}` }))
    const alone = Array.from({ length: 4 }, (_, nth) => `GONE${round}C${5000 + nth}`)
    for (const { first, second } of parcels) await one.push({ trackingIds: [first, second], eventTime: at(1) })
    await one.record(...alone.map(unrecorded))
    const list = [...parcels.map(({ first, second }, nth) => (nth % 2 === 0 ? first : second)), ...alone]
    const half = parcels.slice(12).map(({ first, second }, nth) => (nth % 2 === 0 ? second : first))
    const joining = parcels.slice(0, 12).map(({ first }, nth) => ({ trackingIds: [first, parcels[23 - nth]?.second], eventTime: at(2) }))
    const [whole, reversed, part] = await Promise.all([
      one.forgetList(list),
      other.forgetList(list.toReversed()),
      third.forgetList([...alone, ...half]),
      ...joining.map((push) => third.push(push)),
    ])
    for (const { erased, erasedBefore } of [whole, reversed]) expect(erased + erasedBefore).toBe(list.length)
    expect(part.erased + part.erasedBefore).toBe(alone.length + half.length)
    all.push(...parcels.flatMap(({ first, second }) => [first, second]), ...alone)
  }
  expect(await tablesThatHold(path, all)).toEqual([])
  expect(await storedNumber(path, 'select count(*) from tombstone')).toBe(all.length)
  expect(await deadlocks()).toBe(0)
})

test('identifiers without a parcel that two relays erase at once count as erased by one of them', async () => {
  const { relays, path, deadlocks } = await openThree()
  const [one, other] = relays
  const all: string[] = []
  for (let round = 0; round < 15; round++) {
    const alone = Array.from({ length: 12 }, (_, nth) => `GONE${round}C${5000 + nth}`)
    await one.record(...alone.map(unrecorded))
    const reports = await Promise.all([one.forgetList(alone), other.forgetList(alone.toReversed())])
    const sum = (of: 'erased' | 'erasedBefore' | 'unknown') => reports.reduce((total, report) => total + report[of], 0)
    expect({ erased: sum('erased'), before: sum('erasedBefore'), unknown: sum('unknown') }).toEqual({ erased: 12, before: 12, unknown: 0 })
    all.push(...alone)
  }
  expect(await tablesThatHold(path, all)).toEqual([])
  expect(await deadlocks()).toBe(0)
})
