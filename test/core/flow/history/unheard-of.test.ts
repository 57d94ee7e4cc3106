import { expect, test } from 'vitest'
import type { CarrierAnswer, UnavailableReason } from '../../../../src/core/domain/polling/carrier-answer.ts'
import { aPoll } from '../../../support/history/builders.ts'
import { MINUTE_MS } from '../../../support/runner/constants.ts'
import { anEntry, aView, createWorld, found, NUMBER } from './serve-world.ts'

const text = (served: { readonly body: Buffer }) => served.body.toString()
const unavailable: CarrierAnswer = { kind: 'unavailable', reason: 'network', retryAfterMs: 42_000 }
const refusal = (reason: UnavailableReason): CarrierAnswer => ({ kind: 'unavailable', reason })
const failure = (code: string, retryAfterMs?: number) =>
  expect.objectContaining(retryAfterMs === undefined ? { code } : { code, retryAfterMs })

/** Opens a world with a watched parcel on which nothing has ever reported. */
function createWatched(options: Parameters<typeof createWorld>[0] = {}, unknownToCarrier = false) {
  const world = createWorld(options)
  world.parcels.set(NUMBER, aView({ entries: [], trackingIds: [], distributionType: '', lastSeenAtMs: null, unknownToCarrier }))
  return world
}

test('1.5: a watched parcel without news is fetched when an app asks', async () => {
  const world = createWatched()
  expect(text(await world.ask({ kind: 'latest' }))).toContain('text en')
})

test.each(['all', 'latest'] as const)('1.5: while the carrier has said nothing about a watched parcel, %s is a 503', async (kind) => {
  const world = createWatched()
  world.carrier = async () => unavailable
  await expect(world.ask({ kind })).rejects.toEqual(failure('upstream_unavailable', 42_000))
  world.nowMs += 2000
  await expect(world.ask({ kind })).rejects.toEqual(failure('upstream_unavailable', 40_000))
  expect([world.calls.length, world.served]).toEqual([1, ['unavailable', 'unavailable']])
})

test.each(['all', 'latest'] as const)('1.5: if the carrier says that it does not know a watched parcel, %s is a 404', async (kind) => {
  const world = createWatched()
  world.carrier = async () => ({ kind: 'not_found' })
  await expect(world.ask({ kind })).rejects.toEqual(failure('not_found'))
  world.carrier = async () => unavailable
  world.nowMs += 5 * MINUTE_MS - 1
  await expect(world.ask({ kind })).rejects.toEqual(failure('not_found'))
  world.nowMs += 1
  await expect(world.ask({ kind })).rejects.toEqual(failure('upstream_unavailable'))
})

test('1.5: a parcel that a poll found unknown stays a 404 while the carrier is down', async () => {
  const world = createWatched({}, true)
  world.carrier = async () => unavailable
  await expect(world.ask()).rejects.toEqual(failure('not_found'))
})

test('1.5: if apps may not cause calls, a watched parcel is a 503 until a poll has answered', async () => {
  const world = createWatched({ fetchUnknown: false })
  await expect(world.ask()).rejects.toEqual(failure('upstream_unavailable', MINUTE_MS))
  world.parcels.set(NUMBER, aView({ entries: [], lastSeenAtMs: null, unknownToCarrier: true }))
  await expect(world.ask()).rejects.toEqual(failure('not_found'))
  expect(world.calls).toEqual([])
})

test('1.5, 3.3: an empty list is served only if the carrier has given it', async () => {
  const world = createWatched()
  world.carrier = async (language) => ({ kind: 'found', observation: aPoll({ asked: NUMBER, language, statuses: [] }) })
  expect(text(await world.ask())).toContain('"statuses":[]')
  await expect(world.ask({ kind: 'latest' })).rejects.toEqual(failure('no_entry'))
})

test.each(['rejected', 'bad_response'] as const)(
  '1.5: an unknown number that gets %s waits two seconds, then twice as long, up to an hour',
  async (reason) => {
    const world = createWorld()
    world.carrier = async () => refusal(reason)
    for (const seconds of [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]) {
      await expect(world.ask()).rejects.toEqual(failure('upstream_unavailable', seconds * 1000))
      world.nowMs += seconds * 1000 - 1
      await expect(world.ask({ language: 'sv' })).rejects.toEqual(failure('upstream_unavailable', 1))
      world.nowMs += 1
    }
    expect([world.calls.length, world.unknowns.length]).toEqual([13, 13])
  },
)

test('1.5: a usable answer ends the waits of a number, and the next wait is two seconds again', async () => {
  const world = createWorld()
  for (const answer of [refusal('rejected'), refusal('rejected'), { kind: 'not_found' } as const, refusal('rejected')]) {
    world.carrier = async () => answer
    await world.ask().catch(() => undefined)
    world.nowMs += 10 * MINUTE_MS
  }
  world.nowMs -= 10 * MINUTE_MS
  await expect(world.ask()).rejects.toEqual(failure('upstream_unavailable', 2000))
})

test('1.5: a wait is at least Retry-After long, and a carrier that is down causes no wait', async () => {
  const world = createWorld()
  world.carrier = async () => ({ kind: 'unavailable', reason: 'rejected', retryAfterMs: 10 * MINUTE_MS })
  await expect(world.ask()).rejects.toEqual(failure('upstream_unavailable', 10 * MINUTE_MS))
  world.nowMs += 10 * MINUTE_MS
  world.carrier = async () => unavailable
  await expect(world.ask()).rejects.toEqual(failure('upstream_unavailable', 42_000))
  world.carrier = async (language) => found(language)
  await expect(world.ask()).resolves.toBeDefined()
})

test('4.2: after a refusal, a missing language is fetched again after two seconds, then four', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ entries: [anEntry(['en'])] }))
  world.carrier = async () => refusal('rejected')
  for (const seconds of [2, 4, 8]) {
    expect((await world.ask({ language: 'sv' })).cacheStatus).toContain('stale')
    world.nowMs += seconds * 1000 - 1
    await world.ask({ language: 'sv' })
    world.nowMs += 1
  }
  expect(world.calls).toHaveLength(3)
})
