import { expect, test } from 'vitest'
import { postgres } from '../../../src/store/postgres/postgres-engine.ts'
import { createDatabase } from '../../support/postgres-database.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { openStore } from '../../support/write-side.ts'

const NOON = Date.UTC(2026, 2, 1, 12)
const DAY_MS = 86_400_000

/** Longer than it takes to send a set. */
const AWAY_MS = 20
/** Identifiers and parcels, with the commit; of new ones also their numbers, and their rows. */
const TRIPS_MAX = 10

async function openBehindProxy() {
  const { url } = await createDatabase()
  const proxy = await startTcpProxy(Number(new URL(url).port), { awayMs: AWAY_MS })
  const through = new URL(url)
  through.port = String(proxy.port)
  const store = await openStore(NOON, postgres, through.href)
  const tripsOf = async (work: () => Promise<unknown>) => {
    const before = proxy.trips()
    await work()
    return proxy.trips() - before
  }
  return { ...store, tripsOf }
}

const identifiers = Array.from({ length: 2000 }, (_, nth) => `AB${100_000_000 + nth}SE`)

test('a list of 2,000 identifiers is watched in a handful of round trips, new and known', { timeout: 120_000 }, async () => {
  const { writes, tripsOf, reads } = await openBehindProxy()
  const watch = (list: readonly string[]) => writes.watchMany({ identifiers: list, nowMs: NOON })
  const few = await tripsOf(() => watch(['CD100000001SE']))
  const asNew = await tripsOf(() => watch(identifiers))
  const asKnown = await tripsOf(() => watch(identifiers))
  expect([few, asNew, asKnown].filter((trips) => trips > TRIPS_MAX)).toEqual([])
  expect(await reads.counts(NOON)).toMatchObject({ parcels: 2001, watched: 2001 })
  const again = await watch([identifiers[0] ?? '', 'EF100000001SE', 'EF100000001SE'])
  expect(again.map(({ created }) => created)).toEqual([false, true, false])
  expect(again[1]?.parcelId).toBe(again[2]?.parcelId)
})

test('overdue parcels are ranked in a handful of round trips, however many there are', { timeout: 120_000 }, async () => {
  const { writes, tripsOf } = await openBehindProxy()
  await writes.watchMany({ identifiers, nowMs: NOON })
  const claim = () => writes.claimDuePolls({ nowMs: NOON + DAY_MS, limit: 20, leaseMs: 60_000 })
  const trips = await tripsOf(async () => expect(await claim()).toHaveLength(20))
  // Four looks of up to 512 parcels each.
  expect(trips).toBeLessThanOrEqual(4 * TRIPS_MAX)
})
