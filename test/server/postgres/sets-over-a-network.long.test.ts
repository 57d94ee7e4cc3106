import { expect, test } from 'vitest'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { writeDeliveries } from '../../support/delivery/many-deliveries.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { aPoll, pushBody } from '../../support/history/builders.ts'
import { startDatabaseProxy } from '../../support/network/tcp-proxy.ts'
import { DAY_MS, NOON } from '../../support/runner/constants.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'
import { storedNumber } from '../../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../../support/store/write-side.ts'

/** The delay of the server's answers, long enough to send a whole set before the first answer arrives. */
const AWAY_MS = 20
/** The most round trips that a set may take. */
const TRIPS_MAX = 10

async function openBehindProxy() {
  const { url } = await createDatabase()
  const proxy = await startDatabaseProxy(url, { awayMs: AWAY_MS })
  const store = await openStore(NOON, postgres, proxy.through)
  const tripsOf = async (work: () => Promise<unknown>) => {
    const before = proxy.trips()
    await work()
    return proxy.trips() - before
  }
  return { ...store, tripsOf }
}

const [DELIVERED, DELIVERIES, EVENTS_EACH] = [2, 500, 10]

const identifiers = Array.from({ length: 2000 }, (_, nth) => `AB${100_000_000 + nth}SE`)

test('watching 2,000 identifiers, known or new, takes a handful of round trips', async () => {
  const { writes, tripsOf, reads } = await openBehindProxy()
  const watch = (list: readonly string[]) => writes.watchMany({ identifiers: list, nowMs: NOON })
  const few = await tripsOf(() => watch(['CD100000001SE']))
  const asNew = await tripsOf(() => watch(identifiers))
  const asKnown = await tripsOf(() => watch(identifiers))
  expect([few, asNew, asKnown].filter((trips) => trips > TRIPS_MAX)).toEqual([])
  expect(await reads.counts(NOON)).toMatchObject({ parcels: 2001, watched: 2001 })
  const again = await watch([identifiers[0] ?? '', 'EF100000001SE', 'EF100000001SE'])
  expect(again.map((watched) => watched?.created)).toEqual([false, true, false])
  expect(again[1]?.parcelId).toBe(again[2]?.parcelId)
})

test('ranking overdue parcels takes a handful of round trips, however many there are', async () => {
  const { writes, tripsOf } = await openBehindProxy()
  await writes.watchMany({ identifiers, nowMs: NOON })
  const claim = () => writes.claimDuePolls({ nowMs: NOON + DAY_MS, limit: 20, leaseMs: 60_000 })
  const trips = await tripsOf(async () => expect(await claim()).toHaveLength(20))
  // The claim reads four times, up to 512 parcels each.
  expect(trips).toBeLessThanOrEqual(4 * TRIPS_MAX)
})

test('replaying 500 ended deliveries of 50 parcels takes a handful of round trips', async () => {
  const { writes, path, tripsOf } = await openBehindProxy()
  const [own, other] = [await addEndpoint(writes, NOON), await addEndpoint(writes, NOON, { name: 'other' })]
  await writeDeliveries(path, { endpointId: own.id, count: DELIVERIES, state: DELIVERED, eventsEach: EVENTS_EACH })
  const any = { states: ['delivered'], fromSequence: 0, fromMs: 0, deliveryId: null, sequence: null, parcelId: null } as const
  const replay = async (to: string) => {
    const request = { selection: { endpointId: own.id, ...any }, to, after: null, limit: DELIVERIES + 1, nowMs: NOON, untilMs: NOON }
    expect(await writes.replayDeliveries(request)).toEqual({ count: DELIVERIES, next: null })
  }
  const asCopies = await tripsOf(() => replay(other.id))
  const asTheyAre = await tripsOf(() => replay(own.id))
  expect([asCopies, asTheyAre].filter((trips) => trips > TRIPS_MAX)).toEqual([])
  // The first event of each parcel is due, and the others wait behind it.
  const due = `select count(*) from delivery where endpoint_id = ? and state = 1 and (sequence - 1) % ${EVENTS_EACH} = 0`
  const dueOf = ({ id }: { readonly id: string }) => storedNumber(path, due, Number(id))
  expect([await dueOf(own), await dueOf(other)]).toEqual([DELIVERIES / EVENTS_EACH, DELIVERIES / EVENTS_EACH])
})

test('pages take as many round trips for 200 parcels as for ten', async () => {
  const { record, reads, tripsOf } = await openBehindProxy()
  const poll = (nth: number) => aPoll({ asked: `PA${nth}`, trackingIds: [String(5000 + nth)], askedAtMs: NOON })
  await record(...Array.from({ length: 200 }, (_, nth) => ({ kind: 'poll', observation: poll(nth), watch: true }) as const))
  const list = { status: null, stopped: null, prefix: null, after: null }
  const pages = (limit: number) => [
    async () => expect((await reads.readFeed({ after: 0, limit })).items).toHaveLength(limit),
    async () => expect((await reads.listParcels({ ...list, limit })).parcels).toHaveLength(limit),
    async () => expect((await reads.listParcels({ ...list, prefix: 'PA', limit })).parcels).toHaveLength(limit),
  ]
  const tripsOfEach = async (limit: number) => {
    const trips: number[] = []
    for (const page of pages(limit)) trips.push(await tripsOf(page))
    return trips
  }
  // The first query on a connection also prepares its statement.
  await tripsOfEach(1)
  const few = await tripsOfEach(10)
  // The rows of a larger set may arrive in pieces.
  expect((await tripsOfEach(200)).map((trips, at) => trips - (few[at] ?? 0)).filter((more) => more > TRIPS_MAX)).toEqual([])
})

test('a join takes as many round trips for 20 endpoints as for one', async () => {
  const { record, writes, tripsOf } = await openBehindProxy()
  const at = (second: number) => new Date(NOON - 86_400_000 + second * 1000).toISOString()
  const push = (second: number, ...trackingIds: readonly string[]) =>
    record(incomingPush(pushBody({ trackingIds, eventTime: at(second) }), NOON))
  await addEndpoint(writes, NOON, { name: 'first' })
  for (const [second, id] of ['1001', '1002', '2001', '2002', '3001', '3002'].entries()) await push(second, id)
  await tripsOf(() => push(5, '1001', '1002'))
  const few = await tripsOf(() => push(5, '2001', '2002'))
  for (let nth = 2; nth <= 20; nth++) await addEndpoint(writes, NOON, { name: `endpoint ${nth}` })
  const many = await tripsOf(() => push(5, '3001', '3002'))
  expect(many).toBeLessThanOrEqual(few + 4)
})
