import { expect, test } from 'vitest'
import { flightKey } from '../../../src/server/postgres/polling/postgres-shared-carrier.ts'
import { openSharedCarrier, postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { aRule } from '../../support/insight/a-rule.ts'
import { openWatched } from '../../support/insight/open-watched.ts'
import { NOON } from '../../support/runner/constants.ts'
import { storedRows } from '../../support/store/stored-rows.ts'
import { openStore } from '../../support/store/write-side.ts'

const KEY = Buffer.alloc(32, 1)
const at = (seconds: number) => new Date(NOON + seconds * 1000).toISOString()

async function openReplicas() {
  const one = await openStore(NOON, postgres)
  const other = await openStore(NOON, postgres, one.path)
  for (const { writes } of [one, other]) await writes.useTombstoneKey(KEY)
  return { one, other }
}

test('a replica stores a text again from memory, although another replica has erased it', async () => {
  const { one, other } = await openReplicas()
  const texts = { en: 'Only here' }
  await one.push({ trackingIds: ['GONE0001'], texts, eventTime: at(1) })
  await one.push({ trackingIds: ['GONE0001'], texts, eventTime: at(2) })
  await other.writes.eraseParcels({ identifiers: ['GONE0001'], nowMs: NOON, dryRun: false })
  await one.push({ trackingIds: ['KEPT0001'], texts, eventTime: at(1) })
  expect(JSON.stringify((await other.reads.findParcel('KEPT0001'))?.entries)).toContain('Only here')
})

test('a replica that has recorded nothing yet stores a text again that it has read and another replica has erased', async () => {
  const first = await openStore(NOON, postgres)
  await first.push({ trackingIds: ['GONE0001'], texts: { en: 'Only here' }, eventTime: at(1) })
  await first.writes.useTombstoneKey(KEY)
  // Watchdogs read the texts of parcels in transactions that record nothing.
  const second = await openWatched(postgres, [aRule()], first.path)
  await first.writes.eraseParcels({ identifiers: ['GONE0001'], nowMs: NOON, dryRun: false })
  await second.push({ trackingIds: ['KEPT0001'], texts: { en: 'Only here' }, eventTime: at(1) })
  expect(JSON.stringify((await first.reads.findParcel('KEPT0001'))?.entries)).toContain('Only here')
})

test('replicas that make the key of tombstones at the same time keep one key', async () => {
  const { one, other } = await openReplicas()
  const keep = ({ writes }: typeof one, sealed: string) => writes.keepTombstoneKey({ before: null, sealed })
  const kept = await Promise.all([keep(one, 'first'), keep(other, 'second'), keep(one, 'third'), keep(other, 'fourth')])
  expect(new Set(kept).size).toBe(1)
  expect((await one.writes.tombstoneKey()).sealed).toBe(kept[0])
})

test('a push about a parcel that another replica has erased is not stored', async () => {
  const { one, other } = await openReplicas()
  await one.push({ trackingIds: ['GONE0001'], eventTime: at(1) })
  await other.writes.eraseParcels({ identifiers: ['GONE0001'], nowMs: NOON, dryRun: false })
  expect((await one.push({ trackingIds: ['GONE0001'], eventTime: at(2) })).outcomes).toEqual([{ kind: 'erased' }])
})

test('pushes of a parcel that is erased at the same time leave nothing of it', async () => {
  const { one, other } = await openReplicas()
  for (let round = 0; round < 5; round++) {
    const id = `GONE100${round}`
    await one.push({ trackingIds: [id], eventTime: at(1) })
    await Promise.all([
      other.writes.eraseParcels({ identifiers: [id], nowMs: NOON, dryRun: false }),
      ...[2, 3, 4].map((seconds) => one.push({ trackingIds: [id], eventTime: at(seconds) })),
    ])
    expect(await other.reads.findParcel(id)).toBeNull()
  }
})

test('an erasure forgets the questions about identifiers without a parcel', async () => {
  const { one, other } = await openReplicas()
  const { flights, close } = openSharedCarrier(one.path)
  await flights.take({ key: 'GONE0001', leaseMs: 600_000, waited: false, notFoundForMs: 0 })
  await flights.take({ key: 'KEPT0001', leaseMs: 600_000, waited: false, notFoundForMs: 0 })
  await close()
  await other.writes.eraseParcels({ identifiers: ['GONE0001'], nowMs: NOON, dryRun: false })
  expect(await storedRows(one.path, 'select key from flight')).toEqual([{ key: flightKey('KEPT0001') }])
})
