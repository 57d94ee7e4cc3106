import { expect, test } from 'vitest'
import type { CarrierAnswer } from '../../../../src/core/domain/polling/carrier-answer.ts'
import { anEntry, aView, createWorld, found, NUMBER } from './serve-world.ts'

const unavailable: CarrierAnswer = { kind: 'unavailable', reason: 'timeout', retryAfterMs: 42_000 }
const code = (expected: string) => expect.objectContaining({ code: expected })
const text = (served: { readonly body: Buffer }) => served.body.toString()

test('the first answer comes from the store, and the next from the cache', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView())
  const first = await world.ask({ language: 'sv' })
  expect(text(first)).toContain('"detailedStatusDescription":"detailed sv"')
  expect(first).toMatchObject({ contentLanguage: 'sv', cacheStatus: 'parcel-relay; hit', ageSeconds: 1000 })
  expect(first.etag).toMatch(/^"[\w-]{43}"$/)
  world.nowMs += 2_999
  const second = await world.ask({ language: 'SV', identifier: ' ab123456789se ' })
  expect(second).toMatchObject({ etag: first.etag, ageSeconds: 1002 })
  expect([world.reads, world.calls, world.served]).toEqual([1, [], ['hit', 'hit']])
})

test('if other replicas write too, a cached answer is served only after the store confirms it', async () => {
  const world = createWorld({ isShared: true })
  world.parcels.set(NUMBER, aView({ version: 5 }))
  const question = { app: 'shop', identifier: NUMBER, language: undefined, kind: 'all' } as const
  await world.ask()
  expect(world.serve.fromCache(question)).toBeNull()
  expect(text(await world.ask())).toContain('"location":"Lund"')
  expect([world.reads, world.looks, world.served]).toEqual([1, 1, ['hit', 'hit']])
  world.parcels.set(NUMBER, aView({ version: 6, entries: [anEntry(['en'], { location: 'Umeå' })] }))
  expect(text(await world.ask())).toContain('"location":"Umeå"')
  world.parcels.set(NUMBER, aView({ parcelId: 3, version: 6, entries: [anEntry(['en'], { location: 'Malmö' })] }))
  expect(text(await world.ask())).toContain('"location":"Malmö"')
  expect(text(await world.ask())).toContain('"location":"Malmö"')
  expect([world.reads, world.looks]).toEqual([3, 4])
})

test('R5: if other replicas write too, no cached answer is served while the store is down', async () => {
  const world = createWorld({ isShared: true })
  world.parcels.set(NUMBER, aView())
  await world.ask()
  world.beforeRead = () => Promise.reject(new Error('the database does not answer'))
  await expect(world.ask()).rejects.toEqual(expect.objectContaining({ code: 'storage_unavailable', retryAfterMs: 5000 }))
  expect([world.reads, world.served]).toEqual([1, ['hit', 'unavailable']])
})

test('equal bytes in another language have another ETag', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ entries: [anEntry([])], languagesAsked: ['en', 'sv'] }))
  const [english, swedish] = [await world.ask({ language: 'en' }), await world.ask({ language: 'sv' })]
  expect(text(english)).toBe(text(swedish))
  expect(english.etag).not.toBe(swedish.etag)
})

test.each([
  '..%2f..%2fadmin',
  '../../admin',
  '%',
  'AB\u0000123',
  'AB123\r\n',
  '\nAB1234',
  'a/b12',
  'AB12;x',
  'AB12?',
  'A'.repeat(5000),
  'ABÉ1234',
  '１２３４',
  '\u00a0AB1234',
  'ABC',
  '',
  '__proto__',
])('H20, B5: %j is not an identifier, and causes no call', async (identifier) => {
  const world = createWorld()
  await expect(world.ask({ identifier })).rejects.toEqual(code('bad_tracking_number'))
  expect([world.reads, world.calls.length]).toEqual([0, 0])
})

test.each([[['en', 'sv']], [''], ['\ufffd'], [null], ['e'.repeat(9)]])(
  'H21: %j is not a language, and causes no call',
  async (language) => {
    const world = createWorld()
    await expect(world.ask({ language })).rejects.toEqual(code('bad_language'))
    expect([world.reads, world.calls.length]).toEqual([0, 0])
  },
)

test('R5, 1.5: an unknown parcel is fetched once, watched, and then served from the store', async () => {
  const world = createWorld()
  const served = await world.ask({ language: 'sv' })
  expect(text(served)).toContain('text sv')
  expect(served).toMatchObject({ cacheStatus: 'parcel-relay; fwd=miss; stored', ageSeconds: 0, contentLanguage: 'sv' })
  expect(world.calls).toEqual([{ identifier: NUMBER, language: 'sv', priority: 'app' }])
  expect(world.parcels.get(NUMBER)?.watched).toBe(true)
  expect((await world.ask({ language: 'sv' })).cacheStatus).toBe('parcel-relay; hit')
  expect(world.calls).toHaveLength(1)
})

test('P10: a thousand requests for an unknown parcel cause one call, and count once', async () => {
  const world = createWorld()
  const gate = Promise.withResolvers<CarrierAnswer>()
  world.carrier = () => gate.promise
  const asked = Array.from({ length: 1000 }, (_, index) => world.ask({ language: 'en', kind: index % 2 === 0 ? 'all' : 'latest' }))
  gate.resolve(found('en'))
  const served = await Promise.all(asked)
  expect([served.length, world.calls.length, world.unknowns]).toEqual([1000, 1, ['shop']])
})

test('P10: a request that read the store before another request got its answer makes no call', async () => {
  const world = createWorld()
  const gate = Promise.withResolvers<void>()
  world.beforeRead = () => gate.promise
  const late = world.ask()
  world.beforeRead = async () => {}
  await world.ask()
  gate.resolve()
  await late
  expect(world.calls).toHaveLength(1)
})

test.each([
  ['4.2: a language', {}, 'sv'],
  ['refreshOlderThan: news', { refreshOlderThanMs: 60_000 }, 'en'],
])('%s is not fetched again if another request has fetched it meanwhile', async (_, options, language) => {
  const world = createWorld(options)
  world.parcels.set(NUMBER, aView({ entries: [anEntry(['en'])], lastSeenAtMs: world.nowMs - 60_001 }))
  const gate = Promise.withResolvers<void>()
  world.beforeRead = () => gate.promise
  const late = world.ask({ language })
  world.beforeRead = async () => {}
  await world.ask({ language })
  gate.resolve()
  await late
  expect(world.calls.map((call) => call.language)).toEqual([language])
})

test('requests for an unknown parcel share one call in a configured language, whoever asks', async () => {
  const world = createWorld({ fetchMissingLanguage: false })
  const gate = Promise.withResolvers<CarrierAnswer>()
  world.carrier = () => gate.promise
  const asked = [world.ask({ language: 'fi' }), world.ask({ language: 'sv', app: 'desk' }), world.ask({ app: 'desk' })]
  gate.resolve(found('en'))
  await Promise.all(asked)
  expect(world.calls.map(({ language }) => language)).toEqual(['en'])
})

test('P6, 1.5: a 404 is remembered for five minutes, and then the carrier is asked again', async () => {
  const world = createWorld()
  world.carrier = async () => ({ kind: 'not_found' })
  await expect(world.ask()).rejects.toEqual(code('not_found'))
  world.nowMs += 299_999
  await expect(world.ask({ language: 'sv', kind: 'latest' })).rejects.toEqual(code('not_found'))
  expect(world.calls).toHaveLength(1)
  world.carrier = async (language) => found(language)
  world.nowMs += 2
  expect((await world.ask()).cacheStatus).toContain('stored')
  expect(world.served).toEqual(['not_found', 'not_found', 'fetched'])
})

test.each([
  ['does not know it', { kind: 'not_found' }],
  ['is down', { kind: 'unavailable', reason: 'network' }],
] as const)('1.5: a parcel that is pushed while the carrier is asked is answered if the carrier %s', async (_, answer) => {
  const world = createWorld()
  world.carrier = async () => {
    world.parcels.set(NUMBER, aView())
    return answer
  }
  expect(text(await world.ask())).toContain('detailed en')
  expect(world.calls).toHaveLength(1)
})

test('a parcel that the carrier did not know a moment ago is known after a push', async () => {
  const world = createWorld()
  world.carrier = async () => ({ kind: 'not_found' })
  await expect(world.ask()).rejects.toEqual(code('not_found'))
  world.parcels.set(NUMBER, aView())
  expect((await world.ask()).cacheStatus).toBe('parcel-relay; hit')
})

test('R5, 1.5: while the carrier is down, an unknown parcel gets a 503 that is not remembered', async () => {
  const world = createWorld()
  world.carrier = async () => unavailable
  await expect(world.ask()).rejects.toMatchObject({ code: 'upstream_unavailable', retryAfterMs: 42_000 })
  world.carrier = async (language) => found(language)
  await expect(world.ask()).resolves.toBeDefined()
})

test('R5: if the store cannot be read or written, the answer is 503, not 404', async () => {
  const world = createWorld()
  world.beforeRead = () => Promise.reject(new Error('gone'))
  await expect(world.ask()).rejects.toMatchObject({ code: 'storage_unavailable', retryAfterMs: 5000 })
  world.beforeRead = async () => {}
  world.beforeWrite = () => {
    throw new Error('full')
  }
  await expect(world.ask()).rejects.toEqual(code('storage_unavailable'))
})

test('without fetchUnknown the carrier is not asked about an unknown parcel', async () => {
  const world = createWorld({ fetchUnknown: false })
  await expect(world.ask()).rejects.toEqual(code('not_found'))
  expect(world.calls).toEqual([])
})

test('P11: an app over its limit of unknown identifiers gets a 429, and another app does not', async () => {
  const world = createWorld()
  world.admit = async (app) => (app === 'shop' ? 9000 : null)
  await expect(world.ask()).rejects.toMatchObject({ code: 'too_many_requests', retryAfterMs: 9000 })
  expect(world.calls).toEqual([])
  await expect(Promise.allSettled([world.ask(), world.ask({ app: 'desk' })])).resolves.toMatchObject([
    { status: 'rejected' },
    { status: 'fulfilled' },
  ])
  world.parcels.set(NUMBER, aView())
  await expect(world.ask()).resolves.toBeDefined()
})

test('4.2: a language that an entry lacks is fetched once for all requests, and noted', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ entries: [anEntry(['en'])] }))
  const [served] = await Promise.all([world.ask({ language: 'sv' }), world.ask({ language: 'sv', kind: 'latest' })])
  expect(text(served)).toContain('text sv')
  expect(served).toMatchObject({ cacheStatus: 'parcel-relay; fwd=miss; stored', contentLanguage: 'sv' })
  expect(world.calls).toEqual([{ identifier: NUMBER, language: 'sv', priority: 'app' }])
  expect(world.notes).toEqual(['asked 7 sv'])
})

test('4.2: a language that is not configured causes no call', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ entries: [anEntry(['en'])] }))
  for (const language of ['fi', 'fi-FI', 'de']) expect((await world.ask({ language })).contentLanguage).toBe('en')
  world.parcels.set(NUMBER, aView({ entries: [anEntry(['en', 'fi'])] }))
  world.changed([7])
  expect((await world.ask({ language: 'fi' })).contentLanguage).toBe('fi')
  world.parcels.clear()
  world.changed([7])
  expect((await world.ask({ language: 'fi' })).contentLanguage).toBe('en')
  expect(world.calls.map(({ language }) => language)).toEqual(['en'])
})

test('4.2: for a tag with a region the configured primary subtag is fetched', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ entries: [anEntry(['en'])] }))
  expect((await world.ask({ language: 'sv-SE' })).contentLanguage).toBe('sv')
  expect(await world.ask({ language: 'sv-FI' })).toMatchObject({ contentLanguage: 'sv', cacheStatus: 'parcel-relay; hit' })
  expect(world.calls.map(({ language }) => language)).toEqual(['sv'])
})

test('4.2: a configured language that the carrier lacks is fetched once', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ entries: [anEntry(['en'])] }))
  world.carrier = async (language) => found(language, 'en')
  for (let attempt = 0; attempt < 3; attempt += 1) expect((await world.ask({ language: 'sv' })).contentLanguage).toBe('en')
  expect((await world.ask({ language: 'sv', kind: 'latest' })).contentLanguage).toBe('en')
  expect(world.calls.map(({ language }) => language)).toEqual(['sv'])
})

test('4.2: without a language the default counts as requested, and sv also serves sv-SE', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ entries: [anEntry(['sv'])] }))
  expect((await world.ask({ language: 'sv-SE' })).contentLanguage).toBe('sv')
  expect(world.calls).toEqual([])
  await world.ask()
  expect(world.calls.map(({ language }) => language)).toEqual(['en'])
})

test('4.2: if a language cannot be fetched, another is served as stale until the next call', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ entries: [anEntry(['en'])] }))
  world.carrier = async () => unavailable
  for (let attempt = 0; attempt < 3; attempt += 1) {
    expect(await world.ask({ language: 'sv' })).toMatchObject({ contentLanguage: 'en', cacheStatus: 'parcel-relay; hit; detail=stale' })
  }
  expect(world.calls).toHaveLength(1)
  world.nowMs += 42_001
  world.carrier = async (language) => found(language)
  expect((await world.ask({ language: 'sv' })).contentLanguage).toBe('sv')
  expect(world.served).toEqual(['stale', 'stale', 'stale', 'fetched'])
})

test('6.3: an identifier that the carrier does not know is noted, and known entries are served', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ entries: [anEntry(['en'])] }))
  world.carrier = async () => ({ kind: 'not_found' })
  expect((await world.ask({ language: 'sv' })).contentLanguage).toBe('en')
  expect((await world.ask({ language: 'sv' })).contentLanguage).toBe('en')
  expect([world.calls.length, world.notes]).toEqual([1, [`not pollable ${NUMBER}`]])
})

test('4.2: with fetchMissingLanguage off another language is served without a call', async () => {
  const world = createWorld({ fetchMissingLanguage: false })
  world.parcels.set(NUMBER, aView({ entries: [anEntry(['en'])] }))
  expect(await world.ask({ language: 'sv' })).toMatchObject({ contentLanguage: 'en', cacheStatus: 'parcel-relay; hit' })
  expect(world.calls).toEqual([])
})

test('refreshOlderThan: one call renews an old answer; if the call fails, the answer is stale', async () => {
  const world = createWorld({ refreshOlderThanMs: 60_000 })
  world.parcels.set(NUMBER, aView({ lastSeenAtMs: world.nowMs - 60_000 }))
  expect((await world.ask()).cacheStatus).toBe('parcel-relay; hit')
  world.nowMs += 1
  const [one] = await Promise.all([world.ask(), world.ask({ kind: 'latest' }), world.ask({ language: 'sv' })])
  expect(one).toMatchObject({ cacheStatus: 'parcel-relay; fwd=stale; stored', ageSeconds: 0 })
  expect(world.calls).toHaveLength(1)
  world.nowMs += 60_001
  world.carrier = async () => unavailable
  expect(await world.ask()).toMatchObject({ cacheStatus: 'parcel-relay; hit; detail=stale', ageSeconds: 60 })
})

/** Puts the wall clock back. The monotonic clock does not change. */
function putBack(world: ReturnType<typeof createWorld>, ms: number): void {
  world.nowMs -= ms
  world.putBackMs += ms
}

test('P13: a 404 is remembered for five minutes even if the clock is put back by an hour', async () => {
  const world = createWorld()
  world.carrier = async () => ({ kind: 'not_found' })
  await expect(world.ask()).rejects.toEqual(code('not_found'))
  putBack(world, 3_600_000)
  world.nowMs += 299_999
  await expect(world.ask()).rejects.toEqual(code('not_found'))
  expect(world.calls).toHaveLength(1)
  world.nowMs += 1
  await expect(world.ask()).rejects.toEqual(code('not_found'))
  expect(world.calls).toHaveLength(2)
})

test('P13: after the clock was put back, an answer has the right age and is renewed in time', async () => {
  const world = createWorld({ refreshOlderThanMs: 60_000 })
  world.parcels.set(NUMBER, aView({ lastSeenAtMs: world.nowMs }))
  expect((await world.ask()).ageSeconds).toBe(0)
  putBack(world, 1_000_000)
  // The relay shifts stored times like this when the clock is put back.
  world.parcels.set(NUMBER, aView({ lastSeenAtMs: world.nowMs }))
  world.nowMs += 59_000
  expect(await world.ask()).toMatchObject({ ageSeconds: 59, cacheStatus: 'parcel-relay; hit' })
  world.nowMs += 1001
  expect((await world.ask()).cacheStatus).toBe('parcel-relay; fwd=stale; stored')
})

test('3.3: for a known parcel without entries, /all is an empty list and /latest is a 404', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ entries: [], trackingIds: [], distributionType: '' }))
  expect(text(await world.ask())).toBe('{"statuses":[],"trackingIds":[],"distributionType":""}')
  await expect(world.ask({ kind: 'latest' })).rejects.toEqual(code('no_entry'))
  expect(world.calls).toEqual([])
})

test('6.1: an app’s request revives an unwatched parcel once', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ watched: false }))
  world.beforeWrite = () => {
    throw new Error('full')
  }
  expect((await world.ask()).cacheStatus).toBe('parcel-relay; hit')
  world.beforeWrite = () => {}
  await world.ask()
  await world.ask()
  expect(world.notes).toEqual([`watch ${NUMBER}`])
})

test('R8, 4.3: consumer texts of entries that are not for consumers are not served', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView({ entries: [anEntry(['en', 'sv'], { displayToConsumer: false })] }))
  for (const kind of ['all', 'latest'] as const) {
    const body = text(await world.ask({ kind }))
    expect(body).toContain('"consumerDescription":null')
    expect(body).not.toContain('consumer en')
  }
})

test('a commit removes the parcels that it changed from the cache, and keeps the others', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView())
  world.parcels.set('CD123456789SE', aView({ parcelId: 8 }))
  await world.ask()
  await world.ask({ identifier: 'CD123456789SE' })
  world.parcels.set(NUMBER, aView({ entries: [anEntry(['en', 'sv'], { status: 'Created' })] }))
  world.changed([7])
  expect(text(await world.ask())).toContain('"status":"Created"')
  await world.ask({ identifier: 'CD123456789SE' })
  expect(world.reads).toBe(3)
})

test('a served answer stays cached until a commit changes it or it is too old', async () => {
  const world = createWorld({ refreshOlderThanMs: 60_000 })
  const asked = { app: 'shop', identifier: NUMBER, language: 'en', kind: 'all' } as const
  const fromCache = () => world.serve.fromCache(asked)
  world.parcels.set(NUMBER, aView({ lastSeenAtMs: world.nowMs }))
  expect(fromCache()).toBeNull()
  const given = await world.ask({ language: 'en' })
  world.nowMs += 60_000
  expect(fromCache()).toEqual({ ...given, ageSeconds: 60 })
  world.nowMs += 1
  expect(fromCache()).toBeNull()
  world.nowMs -= 1
  world.changed([7])
  expect(fromCache()).toBeNull()
  expect(world.served).toEqual(['hit', 'hit'])
  expect(() => world.serve.fromCache({ ...asked, identifier: 'x' })).toThrow(code('bad_tracking_number'))
})

test('an answer that was read before a commit is not cached after it', async () => {
  const world = createWorld()
  world.parcels.set(NUMBER, aView())
  const gate = Promise.withResolvers<void>()
  world.beforeRead = () => gate.promise
  const before = world.ask()
  world.parcels.set(NUMBER, aView({ entries: [anEntry(['en', 'sv'], { status: 'Created' })] }))
  world.changed([7])
  gate.resolve()
  await before
  expect(text(await world.ask())).toContain('"status":"Created"')
})
