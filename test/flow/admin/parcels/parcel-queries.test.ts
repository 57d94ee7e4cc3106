import { expect, test } from 'vitest'
import { newParcel, type ParcelState } from '../../../../src/domain/history/parcel-state.ts'
import { createParcelQueries } from '../../../../src/flow/admin/parcels/parcel-queries.ts'
import { DAY_MS, NOON } from '../../../support/runner/constants.ts'

/** What `inspect` says about the next poll of a parcel. The schedule answers that it is polled at its usual interval. */
async function becauseOf(change: Partial<ParcelState>): Promise<string | null> {
  const state = { ...newParcel(7, NOON), watchedAtMs: NOON, ...change }
  const queries = createParcelQueries({
    reads: {
      listParcels: async () => ({ parcels: [], next: null }),
      listStatuses: async () => [],
      inspectParcel: async () => ({ state, identifiers: [], entries: [] }),
    },
    write: { planPoll: async () => ({ kind: 'at', atMs: NOON, why: { kind: 'first' } }) },
    clock: { now: () => NOON },
  })
  return (await queries.inspect('1001')).nextPollBecause
}

test('6.1: a parcel says why it is polled next, or why it is not', async () => {
  expect(await becauseOf({ nextPollAtMs: NOON })).toMatch(/^Nothing is known of it yet/)
  expect(await becauseOf({ stopped: 'unknown' })).toBe('The carrier knows none of its identifiers.')
  expect(await becauseOf({ stopped: 'unknown', nextPollAtMs: NOON + DAY_MS })).toMatch(
    /^The carrier knew none of its identifiers at the last check, and somebody/,
  )
  expect(await becauseOf({ watchedAtMs: null })).toBeNull()
})
