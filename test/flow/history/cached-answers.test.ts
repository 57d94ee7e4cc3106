import { expect, test } from 'vitest'
import { anEntry, aView, createWorld, NUMBER } from './serve-world.ts'

const languagesAsked = (world: ReturnType<typeof createWorld>) => world.calls.map(({ language }) => language)

test('4.2: an entry pushed while a language is fetched lacks it', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ entries: [anEntry(['en'])] }))
  // The entry came during the request, so the carrier's answer lacks it, and the store notes the language as missing.
  world.noted = () => {
    world.noted = () => {}
    const entries = [anEntry(['en'], { status: 'Pushed', sequence: 2 }), anEntry(['en', 'sv'])]
    world.parcels.set(NUMBER, aView({ entries, languagesAsked: [] }))
    world.changed([7])
  }
  await world.ask({ language: 'sv' })
  await world.ask({ language: 'sv' })
  expect(languagesAsked(world)).toEqual(['sv', 'sv'])
})

test('4.2: a watched parcel that was never polled is fetched in the requested language', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ entries: [], lastSeenAtMs: null }))
  const served = await world.ask({ language: 'sv' })
  expect([served.contentLanguage, languagesAsked(world)]).toEqual(['sv', ['sv']])
  expect((await world.ask({ language: 'sv' })).cacheStatus).toBe('parcel-relay; hit')
})

test('6.1: the answer about a stopped parcel is cached only until the parcel can be revived', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ watched: false }))
  world.revivesAtMs = world.nowMs + 60_000
  await world.ask()
  await world.ask()
  world.nowMs += 59_999
  expect((await world.ask()).cacheStatus).toBe('parcel-relay; hit')
  expect(world.notes).toEqual([`watch ${NUMBER}`])
  world.nowMs += 1
  world.revivesAtMs = null
  await world.ask()
  await world.ask()
  expect(world.notes).toEqual([`watch ${NUMBER}`, `watch ${NUMBER}`])
})

test('6.1: the answer about a stopped parcel is not cached after the clock is put back', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ watched: false }))
  world.revivesAtMs = world.nowMs + 60_000
  await world.ask()
  world.nowMs -= 1
  await world.ask()
  expect(world.notes).toHaveLength(2)
})
