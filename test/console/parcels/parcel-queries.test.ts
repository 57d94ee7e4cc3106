import { expect, test } from 'vitest'
import { createParcelQueries } from '../../../src/console/parcels/parcel-queries.ts'
import { NO_CONTEXT } from '../../../src/core/domain/history/order-context.ts'
import { newParcel, type ParcelState } from '../../../src/core/domain/history/parcel-state.ts'
import type { NextPoll } from '../../../src/core/domain/polling/cadence.ts'
import { CARRIER } from '../../support/network/carrier-state.ts'
import { DAY_MS, MINUTE_MS, NOON } from '../../support/runner/constants.ts'

const REGULAR: NextPoll = { kind: 'at', atMs: NOON, why: { kind: 'first' } }

function queriesOf(change: Partial<ParcelState>, planned = REGULAR, carrier = CARRIER) {
  const state = { ...newParcel(7, NOON), watchedAtMs: NOON, ...change }
  return createParcelQueries({
    reads: {
      listParcels: async () => ({ parcels: [{ state, identifiers: [], order: NO_CONTEXT }], next: null }),
      countParcels: async () => ({ count: 0, more: false }),
      listStatuses: async () => [],
      inspectParcel: async () => ({ state, identifiers: [], order: NO_CONTEXT, entries: [], distributionType: '' }),
    },
    write: { planPoll: async () => planned, erasedAtMs: async () => null },
    clock: { now: () => NOON },
    carrier: { state: () => carrier },
  })
}

/** Returns what `inspect` says about the next poll of a parcel. `planned` is the next poll by the schedule. */
async function becauseOf(change: Partial<ParcelState>, planned = REGULAR): Promise<string | null> {
  return (await queriesOf(change, planned).inspect('1001')).nextPollBecause
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

const FIRST_PAGE = { query: null, status: null, stopped: null, cursor: null, limit: 1 }

test.each([
  ['the carrier answers nothing', { breaker: { state: 'open', failures: 20, restMs: 5 * MINUTE_MS } }],
  ['the carrier refuses the password', { credentials: 'refused', refusal: { atMs: NOON, by: null, retryMs: 5 * MINUTE_MS } }],
] as const)('while %s, a next check is promised no sooner than calls are made', async (_why, change) => {
  for (const [plannedMs, earliestMs] of [
    [NOON, NOON + 5 * MINUTE_MS],
    [NOON + DAY_MS, NOON + DAY_MS],
  ] as const) {
    const queries = queriesOf({ nextPollAtMs: plannedMs }, REGULAR, { ...CARRIER, ...change })
    const awaited = { waitsForCarrier: true, state: { nextPollAtMs: earliestMs } }
    expect((await queries.list(FIRST_PAGE)).parcels).toMatchObject([awaited])
    expect(await queries.inspect('1001')).toMatchObject({
      ...awaited,
      nextPollBecause: expect.stringMatching(/when the carrier answers again/),
    })
  }
  const stopped = queriesOf({ stopped: 'delivered' }, REGULAR, { ...CARRIER, ...change })
  expect(await stopped.inspect('1001')).toMatchObject({
    waitsForCarrier: false,
    nextPollBecause: expect.stringMatching(/^It is delivered/),
  })
})
