import { describe, expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS, NOON } from '../../../support/runner/constants.ts'
import { casesOf } from '../../../support/runner/long-form.ts'
import { engines } from '../../../support/store/engines.ts'
import { changeStoredRows } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

/** SQL for a number of milliseconds below ten seconds, which differs between parcels. Ids may be 10,000 apart, so the divisor is a prime. */
const APART = 'id % 9973'

const iso = (atMs: number) => new Date(atMs).toISOString()
const named = (at: number) => `CD${String(at).padStart(6, '0')}`

describe.each(engines)('claims of due polls on $name', (engine) => {
  test('6.4: the most valuable polls of a large backlog come within two minutes, then the others', async () => {
    const { writes, path, poll, pass, now, parcelIdOf } = await openStore(NOON, engine)
    const backlog = casesOf(2600, 1300)
    await writes.watchMany({ identifiers: Array.from({ length: backlog }, (_, at) => named(at)), nowMs: NOON })
    // All parcels are delivered and checked, so their polls have little value, and all have been overdue for hours.
    await changeStoredRows(
      path,
      `UPDATE parcel SET latest_status = 'DeliverySucceeded', latest_at_ms = ?, checked_at_ms = ?, next_poll_at_ms = ? + ${APART}`,
      NOON - HOUR_MS,
      NOON,
      NOON,
    )
    await poll({ asked: 'ONTHEWAY1SE', trackingIds: ['1'], statuses: [{ eventTimestamp: iso(NOON - HOUR_MS) }] })
    await changeStoredRows(
      path,
      'UPDATE parcel SET next_poll_at_ms = ? WHERE id = ?',
      NOON + 2 * MINUTE_MS,
      await parcelIdOf('ONTHEWAY1SE'),
    )
    pass(HOUR_MS)
    const claim = async () =>
      (await writes.claimDuePolls({ nowMs: now(), limit: 4, leaseMs: HOUR_MS })).map(({ identifiers }) => identifiers[0])
    const claimed = await claim()
    for (let turns = 0; !claimed.includes('ONTHEWAY1SE') && turns < 10; turns++) {
      pass(15_000)
      claimed.push(...(await claim()))
    }
    expect(claimed.length).toBeLessThan(40)
    expect(claimed).toContain('ONTHEWAY1SE')
    for (let some = await claim(); some.length > 0; some = await claim()) claimed.push(...some)
    expect([claimed.length, new Set(claimed).size]).toEqual([backlog + 1, backlog + 1])
  })
})
