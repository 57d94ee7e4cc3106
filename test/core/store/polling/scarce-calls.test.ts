import { describe, expect, test } from 'vitest'
import { HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

describe.each(engines)('scarce calls on $name', (engine) => {
  test('6.4: the most overdue parcel is polled first, and a delivered one after all others', async () => {
    const { writes, poll, pass, now } = await openStore(NOON, engine)
    const delivered = { status: 'DeliverySucceeded', eventTimestamp: '2026-03-01T09:59:59Z' }
    const asked = async () => {
      const due = await writes.claimDuePolls({ nowMs: now(), limit: 1, leaseMs: HOUR_MS / 12 })
      return due.map(({ identifiers }) => identifiers[0])
    }
    await poll({ asked: 'DELIVERED1SE', trackingIds: ['1'], statuses: [delivered] })
    await poll({ asked: 'ONTHEWAY1SE', trackingIds: ['2'], askedAtMs: pass(23 * HOUR_MS) })
    // The delivered parcel falls due half an hour before the other.
    pass(HOUR_MS / 2)
    expect(await asked()).toEqual(['DELIVERED1SE'])
    pass(HOUR_MS)
    expect(await asked()).toEqual(['ONTHEWAY1SE'])
    expect(await asked()).toEqual(['DELIVERED1SE'])
    expect(await asked()).toEqual([])
  })
})
