import { expect, test } from 'vitest'
import { type ConcernsPorts, createConcerns, createKeepLook } from '../../../src/console/overview/overview.ts'
import { createConcernTable } from '../../../src/console/problems/concern-kinds.ts'
import { WELL } from '../../support/portal/situation.ts'

const HOUR_MS = 3_600_000

function openConcerns({ clock = { now: () => 0, monotonic: () => 0 }, ...ports }: Partial<ConcernsPorts> = {}) {
  return createConcerns({
    reads: {
      listParcels: async () => ({ parcels: [], next: null }),
      listOldestWaiting: async () => new Map(),
    },
    offered: [],
    kinds: createConcernTable([]),
    keep: createKeepLook(clock),
    certificates: () => [],
    failedReload: () => null,
    undelivered: () => null,
    isQuiet: () => false,
    wal: () => ({ bytes: 0, bytesWarn: 1 }),
    carrierAheadMs: () => null,
    replicaId: () => 1,
    clock,
    ...ports,
  })
}

test('a look that failed is not kept: the next call looks again', async () => {
  let looks = 0
  const look = createKeepLook({ monotonic: () => 0 })(async () => {
    looks += 1
    if (looks === 1) throw new Error('the store is busy')
    return []
  })
  const concerns = openConcerns({ offered: [look] })
  await expect(concerns(WELL)).rejects.toThrow('busy')
  await concerns(WELL)
  await concerns(WELL)
  expect(looks).toBe(2)
})

test('the calls of a day that are all made are a concern until the next day', async () => {
  const spent = (callsToday: number) => ({ ...WELL, carrier: { ...WELL.carrier, budget: { ...WELL.carrier.budget, callsToday } } })
  const concerns = openConcerns()
  const { callsPerDay } = WELL.carrier.budget
  expect((await concerns(spent(callsPerDay))).map(({ kind }) => kind)).toEqual(['polls_behind'])
  expect(await concerns(spent(callsPerDay - 1))).toEqual([])
})

/** A relay that starts with a parcel whose poll has been due for ten hours, so long before its clock shows 0. */
function openLate(isQuiet: (nowMs: number) => boolean = () => false) {
  let nowMs = 0
  const parcels = [{ state: { nextPollAtMs: -10 * HOUR_MS } }] as unknown as Awaited<
    ReturnType<ConcernsPorts['reads']['listParcels']>
  >['parcels']
  const concerns = openConcerns({
    reads: {
      listParcels: async () => ({ parcels, next: null }),
      listOldestWaiting: async () => new Map(),
    },
    isQuiet,
    clock: { now: () => nowMs, monotonic: () => nowMs },
  })
  return async (atMs: number, seen = WELL) => {
    nowMs = atMs
    return (await concerns(seen)).map(({ kind }) => kind)
  }
}

test('polls that are overdue after a long stop fall behind only an hour after the start', async () => {
  const look = openLate()
  expect(await look(0)).toEqual([])
  expect(await look(HOUR_MS - 1)).toEqual([])
  expect(await look(HOUR_MS)).toEqual(['polls_behind'])
})

test('polls do not fall behind in quiet hours, nor within an hour after them', async () => {
  const look = openLate((nowMs) => nowMs >= HOUR_MS && nowMs < 5 * HOUR_MS)
  expect(await look(4 * HOUR_MS)).toEqual([])
  const unseen = openLate((nowMs) => nowMs >= HOUR_MS && nowMs < 5 * HOUR_MS)
  expect(await unseen(5.9 * HOUR_MS)).toEqual([])
  expect(await unseen(6 * HOUR_MS)).toEqual(['polls_behind'])
})

test('polls do not fall behind within an hour after a carrier has failed', async () => {
  const look = openLate()
  const carrier = { ...WELL.carrier, breaker: { ...WELL.carrier.breaker, state: 'open' as const } }
  expect(await look(2 * HOUR_MS, { ...WELL, carrier })).toEqual([])
  expect(await look(3 * HOUR_MS - 1)).toEqual([])
  expect(await look(3 * HOUR_MS)).toEqual(['polls_behind'])
})
