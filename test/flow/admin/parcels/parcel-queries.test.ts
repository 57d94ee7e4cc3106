import { expect, test } from 'vitest'
import { newParcel, type ParcelState } from '../../../../src/domain/history/parcel-state.ts'
import type { NextPoll } from '../../../../src/domain/polling/cadence.ts'
import { createParcelQueries } from '../../../../src/flow/admin/parcels/parcel-queries.ts'
import { DAY_MS, MINUTE_MS, NOON } from '../../../support/runner/constants.ts'

const REGULAR: NextPoll = { kind: 'at', atMs: NOON, why: { kind: 'first' } }

/** Returns what `inspect` says about the next poll of a parcel. `planned` is the next poll by the schedule. */
async function becauseOf(change: Partial<ParcelState>, planned = REGULAR): Promise<string | null> {
  const state = { ...newParcel(7, NOON), watchedAtMs: NOON, ...change }
  const queries = createParcelQueries({
    reads: {
      listParcels: async () => ({ parcels: [], next: null }),
      countParcels: async () => ({ count: 0, more: false }),
      listStatuses: async () => [],
      inspectParcel: async () => ({ state, identifiers: [], entries: [], distributionType: '' }),
    },
    write: { planPoll: async () => planned, erasedAtMs: async () => null },
    clock: { now: () => NOON },
  })
  return (await queries.inspect('1001')).nextPollBecause
}

test('6.1: a parcel shows why its next poll is planned, or why it is not polled', async () => {
  expect(await becauseOf({ nextPollAtMs: NOON })).toMatch(/^Nothing is known of it yet/)
  expect(await becauseOf({ stopped: 'unknown' })).toBe('The carrier knows none of its identifiers.')
  expect(await becauseOf({ stopped: 'unknown', nextPollAtMs: NOON + DAY_MS })).toMatch(
    /^At the last check, the carrier knew none of its identifiers. Somebody has asked/,
  )
  expect(await becauseOf({ watchedAtMs: null })).toBeNull()
})

test('6.4: a parcel shows that its next check waits because of a Retry-After', async () => {
  const failed: NextPoll = { kind: 'at', atMs: NOON + MINUTE_MS, why: { kind: 'failed', failures: 1, retryMs: MINUTE_MS } }
  expect(await becauseOf({ failures: 1, nextPollAtMs: NOON + MINUTE_MS }, failed)).toMatch(/it is tried again after 1 min/)
  expect(await becauseOf({ failures: 1, nextPollAtMs: NOON + DAY_MS }, failed)).toMatch(/the carrier asked not to be asked again before/)
})
