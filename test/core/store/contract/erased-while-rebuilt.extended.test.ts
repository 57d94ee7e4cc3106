import { describe, expect, test } from 'vitest'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { tablesThatHold } from '../../../support/store/all-rows.ts'
import { engines } from '../../../support/store/engines.ts'
import { rebuildStore } from '../../../support/store/rebuilt-store.ts'
import { changeStoredRows, storedNumber } from '../../../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

const eventTime = (nth: number) => new Date(NOON + nth * 60_000).toISOString()

/** Stores a parcel with 25 pushes, which a rebuild reads in pieces, between two parcels with one push each. */
async function open(engine: Engine) {
  const store = await openStore(NOON, engine)
  const { writes } = store
  await writes.keepTombstoneKey({ before: null, sealed: 'sealed' })
  await writes.useTombstoneKey(Buffer.alloc(32, 7))
  const pushOf = (id: string, nth: number) =>
    incomingPush(pushBody({ trackingIds: [id], eventTime: eventTime(nth), location: `at ${id}` }), NOON)
  await store.record(pushOf('FIRST001', 0), ...Array.from({ length: 25 }, (_, nth) => pushOf('GONE0001', nth)), pushOf('LAST0001', 0))
  const erase = async (identifier: string) => {
    await writes.eraseParcels({ identifiers: [identifier], nowMs: NOON, dryRun: false })
    await writes.endErasures({ identifiers: await writes.unfinishedErasures(), isLate: false, unreadable: 0 })
  }
  return { ...store, erase }
}

describe.each(engines)('an erasure beside a rebuild on $name', (engine) => {
  test('a parcel that is erased while a rebuild reads it in pieces never comes back', async () => {
    const store = await open(engine)
    // A rebuild would write the deleted entry again.
    await changeStoredRows(store.path, 'delete from sighting where at_ms = ?', Date.parse(eventTime(20)))
    let stretch = 0
    const meanwhile = async () => {
      stretch += 1
      if (stretch === 2) await store.erase('GONE0001')
    }
    const report = await rebuildStore(store, { limit: 10, meanwhile })
    expect(report).toMatchObject({ differing: 0, left: 0, conflicts: 0 })
    expect(await tablesThatHold(store.path, ['GONE0001'])).toEqual([])
    expect(await storedNumber(store.path, 'select count(*) from parcel')).toBe(2)
    expect(await rebuildStore(store)).toMatchObject({ parcels: 2, differing: 0 })
  })

  test('a parcel that is erased after its correction leaves nothing, not even in the report', async () => {
    const store = await open(engine)
    await changeStoredRows(store.path, 'delete from sighting where at_ms = ?', Date.parse(eventTime(20)))
    expect(await rebuildStore(store, { limit: 10 })).toMatchObject({ changes: { entry: 1 } })
    await store.erase('GONE0001')
    expect(await tablesThatHold(store.path, ['GONE0001'])).toEqual([])
  })

  test('a rebuild during an erasure gives no erased identifier to a living parcel', async () => {
    const store = await open(engine)
    await store.erase('GONE0001')
    // A living parcel's push names the erased parcel, as pushes after an erasure may.
    const both = pushBody({ trackingIds: ['LAST0001', 'GONE0001'], eventTime: eventTime(1) })
    expect((await store.record(incomingPush(both, NOON))).outcomes).toMatchObject([{ kind: 'recorded' }])
    await changeStoredRows(store.path, 'delete from sighting where at_ms = ?', Date.parse(eventTime(1)))
    // The rebuild runs before the erasure has searched the stored pushes for the identifier (`searchMentions`).
    expect(await rebuildStore(store)).toMatchObject({ parcels: 2, changes: { entry: 1 }, conflicts: 0 })
    expect(await store.reads.findParcel('GONE0001')).toBeNull()
    expect((await store.reads.findParcel('LAST0001'))?.entries).toHaveLength(2)
    await store.writes.searchMentions({ identifiers: ['GONE0001'], place: { source: 'quarantined', after: 0 }, limit: 200, dryRun: false })
    expect(await tablesThatHold(store.path, ['GONE0001'])).toEqual(['inbox: GONE0001'])
  })
})
