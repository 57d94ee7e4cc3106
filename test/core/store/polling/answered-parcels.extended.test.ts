import { describe, expect, test } from 'vitest'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { changeStoredRows } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

describe.each(engines)('parcels that were answered before, on $name', (engine) => {
  test('6.8: are named by the number that is polled, and only while their last poll was answered', async () => {
    const { reads, writes, poll, parcelIdOf, now } = await openStore(NOON, engine)
    await poll({ asked: 'CD000001', trackingIds: ['1001'] })
    await writes.watch({ identifier: 'CD000002', nowMs: NOON })
    expect(await reads.answeredParcels()).toEqual(['CD000001'])
    await writes.notePollFailure({ parcelId: await parcelIdOf('CD000001'), kind: 'unavailable', atMs: now() })
    expect(await reads.answeredParcels()).toEqual([])
  })

  test('6.8: are delivered ones if no watched one was answered', async () => {
    const { reads, writes, poll, path } = await openStore(NOON, engine)
    await poll({ asked: 'CD000001', trackingIds: ['1001'] })
    await changeStoredRows(path, `UPDATE parcel SET next_poll_at_ms = NULL, stopped = 'delivered', failures = ?`, 0)
    await writes.watch({ identifier: 'CD000002', nowMs: NOON })
    expect(await reads.answeredParcels()).toEqual(['CD000001'])
  })

  test('6.8: are those that were ever answered, if a check asks and every last poll failed', async () => {
    const { reads, writes, poll, parcelIdOf, now, path } = await openStore(NOON, engine)
    await writes.watch({ identifier: 'CD000001', nowMs: NOON })
    await poll({ asked: 'CD000002', trackingIds: ['1001'] })
    for (const identifier of ['CD000001', 'CD000002'])
      await writes.notePollFailure({ parcelId: await parcelIdOf(identifier), kind: 'unusable', atMs: now() })
    expect(await reads.answeredParcels({ orEver: true })).toEqual(['CD000002'])
    await changeStoredRows(path, `UPDATE parcel SET next_poll_at_ms = NULL, stopped = 'unknown', failures = ?`, 9)
    expect(await reads.answeredParcels({ orEver: true })).toEqual(['CD000002'])
    await poll({ asked: 'CD000003', trackingIds: ['1003'] })
    expect(await reads.answeredParcels({ orEver: true })).toEqual(['CD000003'])
  })
})
