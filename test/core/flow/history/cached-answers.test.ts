import { expect, test } from 'vitest'
import { anEntry, aView, createWorld, NUMBER } from './serve-world.ts'

const languagesAsked = (world: ReturnType<typeof createWorld>) => world.calls.map(({ language }) => language)

test('4.2: an entry that is pushed while a language is fetched lacks that language', async () => {
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

test('6.1: a request revives a stopped parcel once, and the answer is then cached', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ watched: false }))
  await world.ask()
  expect((await world.ask()).cacheStatus).toBe('parcel-relay; hit')
  expect([world.notes, world.reads]).toEqual([[`watch ${NUMBER}`], 2])
})
