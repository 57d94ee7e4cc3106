import { describe, expect, test } from 'vitest'
import { noAudience } from '../../../../src/core/domain/history/audience.ts'
import { certainNeeds, continueJoins, firstNeeds, joinNeeds, namesOf, startJoins } from '../../../../src/core/domain/history/batch-needs.ts'
import { newParcel } from '../../../../src/core/domain/history/parcel-state.ts'
import { ENTRIES_MAX } from '../../../../src/core/domain/history/pull-response.ts'
import { type Incoming, recordBatch } from '../../../../src/core/domain/history/recording.ts'
import { type KeptSighting, sightingsOf } from '../../../../src/core/domain/history/sightings.ts'
import { addLoaded, joinKey, NO_PARCEL, onlyNeeds, pushKey, startSnapshot } from '../../../../src/core/domain/history/snapshot.ts'
import { parsePush } from '../../../../src/core/domain/ingest/parse-push.ts'
import { aPoll, aPush, type PollFields, type PushFields, pushBody } from '../../../support/history/builders.ts'
import { NOON } from '../../../support/runner/constants.ts'

/** The time of the events of `aPush`, in epoch seconds. */
const TEN = Date.UTC(2026, 2, 1, 10) / 1000

const incoming = (body: Uint8Array): Incoming => parsePush({ body, contentEncoding: null, receivedAtMs: NOON, keyIndex: 0 })
const push = (fields: PushFields = {}) => incoming(pushBody(fields))
const poll = (fields: PollFields): Incoming => ({ kind: 'poll', observation: aPoll(fields), watch: false })

function needsOf(known: Readonly<Record<string, number>>, ...observations: readonly Incoming[]) {
  const identifiers = new Map(Object.entries(known).map(([value, parcelId]) => [value, { value, parcelId, isTrackingId: true }]))
  const batch = recordBatch(observations, NOON)
  return { needs: firstNeeds(batch, { identifiers, tombstones: new Map(), endpoints: [] }), digests: batch.digests }
}

test('a batch names each identifier once, and ignores pushes that are not events', () => {
  const named = namesOf([
    push({ trackingIds: ['1001', '1002'] }),
    incoming(Buffer.from('{')),
    poll({ asked: '1002', trackingIds: ['1003'] }),
  ])
  expect(named).toEqual(['1001', '1002', '1003'])
})

describe('the first needs of a batch', () => {
  test('include nothing about an unknown parcel', () => {
    expect(needsOf({}, push()).needs).toEqual({ ...onlyNeeds({}), joins: [] })
  })

  test('include the stored copies of pushes, and the sightings in the seconds of the pushes', () => {
    const later = { eventTime: '2026-03-01T10:00:00.900Z', location: 'Malmö' }
    const { needs, digests } = needsOf({ 1001: 7 }, push(), push(later), push({ eventTime: '2026-03-01T10:00:01Z' }))
    const [one = '', two = '', three = ''] = digests
    expect(needs).toEqual({
      ...onlyNeeds({
        parcels: [7],
        pushes: digests.map((digest) => ({ parcelId: 7, digest })),
        seconds: [
          { parcelId: 7, second: TEN, digests: [one, two] },
          { parcelId: 7, second: TEN + 1, digests: [three] },
        ],
        answers: [7],
      }),
      joins: [],
    })
  })

  test('include the whole parcel if one of its observations is a poll', () => {
    const { needs } = needsOf({ 1001: 7 }, push(), poll({ asked: '1001' }))
    expect(needs).toMatchObject({ parcels: [7], whole: [7], seconds: [], answers: [7], joins: [] })
    expect(needsOf({ 1001: 7 }, poll({ asked: '1001' }), push({ trackingIds: ['1002', '1001'] })).needs).toMatchObject({
      whole: [7],
      seconds: [],
    })
  })

  test('include all parcels that shared identifiers connect, the oldest first', () => {
    const { needs } = needsOf({ 1001: 9, 1003: 7 }, push({ trackingIds: ['1001', '1002'] }), push({ trackingIds: ['1002', '1003'] }))
    expect(needs).toMatchObject({ joins: [[7, 9]], whole: [], seconds: [], answers: [] })
    expect(new Set(needs.parcels)).toEqual(new Set([7, 9]))
  })

  test('include no stored copy of a push whose identifiers belong to several parcels or to none', () => {
    expect(
      needsOf({ 1001: 9, 1003: 7 }, push({ trackingIds: ['1001', '1003'] }), push({ trackingIds: ['1001', '1004'] })).needs.pushes,
    ).toEqual([])
  })

  test('include the stored copy of a push that is not an event and thus belongs to no parcel', () => {
    const { needs, digests } = needsOf({}, incoming(Buffer.from('{')))
    expect(needs).toEqual({ ...onlyNeeds({ pushes: [{ parcelId: NO_PARCEL, digest: digests[0] ?? '' }] }), joins: [] })
  })
})

describe('the later needs, once the parcels are known', () => {
  const state = { ...newParcel(7, NOON), latest: { status: 'TerminalArrived', atMs: TEN * 1000 + 250 } }
  const { needs, digests } = needsOf({ 1001: 7 }, push(), push({ eventTime: '2026-03-01T10:00:01Z' }))

  test('leave out the seconds after the latest entry', () => {
    expect(certainNeeds(needs, [state], new Map()).seconds.map(({ second }) => second)).toEqual([TEN])
    expect(certainNeeds(needs, [newParcel(7, NOON)], new Map()).seconds).toEqual([])
  })

  test('leave out the seconds in which all pushes are duplicates', () => {
    const kept = new Map([[pushKey(7, digests[0] ?? ''), 1]])
    expect(certainNeeds(needs, [state], kept).seconds).toEqual([])
    const beside = needsOf({ 1001: 7 }, push(), push({ location: 'Malmö' }))
    expect(certainNeeds(beside.needs, [state], kept).seconds).toHaveLength(1)
  })

  test('include answers only if the batch has a poll of the parcel', () => {
    expect(certainNeeds(needs, [state], new Map()).answers).toEqual([])
    expect(certainNeeds(needsOf({ 1001: 7 }, poll({ asked: '1001' })).needs, [state], new Map()).answers).toEqual([7])
  })
})

const nothing = { next: { parcelId: 1, sequence: 1, inboxId: 1 }, identifiers: new Map(), endpoints: [] }
const nothingFound = {
  parcels: [],
  pushes: new Map(),
  seconds: new Map(),
  whole: new Map(),
  answers: new Map(),
  orders: new Map(),
  bodies: new Map(),
  contexts: new Map(),
}

test('a load keeps everything that was loaded before it', () => {
  const loads = [
    {
      ...nothingFound,
      needs: onlyNeeds({ parcels: [7], pushes: [{ parcelId: NO_PARCEL, digest: 'one' }] }),
      parcels: [newParcel(7, NOON)],
      pushes: new Map([['0/one', 1]]),
    },
    { ...nothingFound, needs: onlyNeeds({ answers: [7], pushes: [{ parcelId: NO_PARCEL, digest: 'two' }] }) },
  ]
  let snapshot = startSnapshot({ ...nothing, tombstones: new Map() })
  for (const loaded of loads) snapshot = addLoaded(snapshot, loaded)
  expect(snapshot.parcels.get(7)).toMatchObject({ state: { parcelId: 7 }, whole: false, answers: [], order: null })
  expect([[...snapshot.pushes.keys()], [...snapshot.unrecorded]]).toEqual([['0/one'], ['one', 'two']])
})

describe('parcels that are to be joined', () => {
  const sightings = (count: number, from = 0): readonly KeptSighting[] =>
    Array.from({ length: count }, (_, nth) =>
      sightingsOf(aPush({ location: `Place ${from + nth}` })).map((one) => ({
        ...one,
        sequence: nth,
        learntAtMs: null,
        audience: noAudience,
      })),
    ).flat()

  /** Joins parcels with these sightings. `turns`: the parcels that each step loaded. */
  function load(...held: readonly (readonly KeptSighting[])[]) {
    const ids = held.map((_, at) => at + 1)
    const parcels = held.map(({ length }, at) => ({ ...newParcel(at + 1, NOON), entryCount: length }))
    const loaded = (needs: ReturnType<typeof onlyNeeds>) => ({
      ...nothingFound,
      needs,
      parcels: needs.parcels.length === 0 ? [] : parcels,
      whole: new Map(needs.whole.map((id) => [id, held[id - 1] ?? []])),
    })
    let snapshot = addLoaded(startSnapshot({ ...nothing, tombstones: new Map() }), loaded(onlyNeeds({ parcels: ids })))
    const turns: (readonly number[])[] = []
    let joins = startJoins([ids], snapshot)
    while (joins.length > 0) {
      const needs = joinNeeds(joins, snapshot)
      turns.push(needs.whole)
      ;({ joins, snapshot } = continueJoins(joins, addLoaded(snapshot, loaded(needs))))
    }
    return { turns, snapshot }
  }

  test('are loaded in one step if their entries fit into one parcel', () => {
    const { turns, snapshot } = load(sightings(2), sightings(3, 2), sightings(4, 5))
    expect(turns).toEqual([[1, 2, 3]])
    expect([...snapshot.parcels.values()].map(({ whole, answers }) => ({ whole, answers }))).toEqual(
      Array.from({ length: 3 }, () => ({ whole: true, answers: [] })),
    )
    expect(snapshot.overfull.size).toBe(0)
  })

  test('are not loaded further when their entries exceed the limit', () => {
    const half = ENTRIES_MAX / 2 + 1
    const { turns, snapshot } = load(sightings(half), sightings(half, half), sightings(half, 2 * half), sightings(half, 3 * half))
    expect(turns).toEqual([[1, 2]])
    expect([...snapshot.overfull]).toEqual([joinKey([1, 2, 3, 4])])
    expect(snapshot.parcels.get(3)?.whole).toBe(false)
  })

  test('are all loaded if they have the same entries', () => {
    const same = sightings(ENTRIES_MAX / 2 + 1)
    const { turns, snapshot } = load(same, same, same)
    expect(turns).toEqual([[1, 2], [3]])
    expect(snapshot.overfull.size).toBe(0)
  })
})
