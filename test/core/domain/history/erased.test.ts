import { expect, test } from 'vitest'
import { isOfErased, markOf, type Tombstone, withoutErasedOfPoll, withoutErasedOfPush } from '../../../../src/core/domain/history/erased.ts'
import { aPoll, aPush } from '../../../support/history/builders.ts'
import { DAY_MS, NOON } from '../../../support/runner/constants.ts'

const rules = { identifierReuseAfterMs: DAY_MS }
const tombstone: Tombstone = { parcelId: 7, erasedAtMs: NOON }
const look = (living: readonly string[], erased: readonly string[] = ['GONE0001']) => ({
  nowMs: NOON + 10 * DAY_MS,
  tombstones: new Map(erased.map((value) => [value, tombstone])),
  rules,
  isLiving: (value: string) => living.includes(value),
})
const early = new Date(NOON).toISOString()
const late = new Date(NOON + 2 * DAY_MS).toISOString()

test('the mark of an erased identifier depends on key and identifier, and reveals neither', () => {
  const [one, other] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  expect(markOf(one, 'GONE0001')).toBe(markOf(one, 'GONE0001'))
  expect(markOf(one, 'GONE0001')).not.toBe(markOf(other, 'GONE0001'))
  expect(markOf(one, 'GONE0001')).not.toContain('GONE')
})

test('an event is about the erased parcel until the reuse time, or forever', () => {
  expect(isOfErased(tombstone, NOON + DAY_MS, rules)).toBe(true)
  expect(isOfErased(tombstone, NOON + DAY_MS + 1, rules)).toBe(false)
  expect(isOfErased(tombstone, NOON + 1000 * DAY_MS, { identifierReuseAfterMs: null })).toBe(true)
})

test('a push that names no erased identifier is unchanged', () => {
  const push = aPush({ trackingIds: ['LIVE0001'] })
  expect(withoutErasedOfPush(push, look([]))).toEqual({ kind: 'living', observation: push })
})

test('a push with an erased identifier and no living parcel makes all its identifiers erased', () => {
  const push = aPush({ trackingIds: ['GONE0001', 'OTHER001'], eventTime: early })
  expect(withoutErasedOfPush(push, look([]))).toEqual({ kind: 'erased', names: [{ value: 'OTHER001', ...tombstone }] })
})

test('a push that also names a living parcel loses only the erased identifier', () => {
  const push = aPush({ trackingIds: ['GONE0001', 'LIVE0001'], eventTime: early })
  expect(withoutErasedOfPush(push, look(['LIVE0001']))).toMatchObject({ kind: 'living', observation: { trackingIds: ['LIVE0001'] } })
})

test('a push after the reuse time is about a new parcel, and an earlier push never is', () => {
  const living = look(['GONE0001'])
  expect(withoutErasedOfPush(aPush({ trackingIds: ['GONE0001'], eventTime: late }), living).kind).toBe('living')
  expect(withoutErasedOfPush(aPush({ trackingIds: ['GONE0001'], eventTime: early }), living)).toEqual({ kind: 'erased', names: [] })
})

test('an answer about an erased identifier is dropped, with or without entries', () => {
  const poll = { asked: 'GONE0001', trackingIds: ['OTHER001'] }
  const dropped = { kind: 'erased', names: [{ value: 'OTHER001', ...tombstone }] }
  expect(withoutErasedOfPoll(aPoll({ ...poll, statuses: [{ eventTimestamp: early }] }), look([]))).toEqual(dropped)
  expect(withoutErasedOfPoll(aPoll({ ...poll, statuses: [] }), look([]))).toEqual(dropped)
})

test('an answer about a living parcel that lists an erased identifier is recorded without it', () => {
  const poll = aPoll({ asked: 'LIVE0001', trackingIds: ['GONE0001', 'LIVE0002'], statuses: [{ eventTimestamp: early }] })
  const seen = withoutErasedOfPoll(poll, look(['LIVE0001']))
  expect(seen).toMatchObject({ kind: 'living', observation: { asked: 'LIVE0001', trackingIds: ['LIVE0002'], isPartial: true } })
  expect(seen).toMatchObject({ observation: { sightings: [{}], skipped: 1 } })
})

test('an answer about a reused identifier keeps only the entries of the new parcel', () => {
  const statuses = [{ eventTimestamp: late }, { eventTimestamp: early }]
  const seen = withoutErasedOfPoll(aPoll({ asked: 'GONE0001', trackingIds: ['GONE0001'], statuses }), look([]))
  expect(seen).toMatchObject({ kind: 'living', observation: { asked: 'GONE0001', trackingIds: ['GONE0001'], isPartial: true } })
  if (seen.kind === 'living') expect(seen.observation.sightings.map(({ instant }) => instant.atMs)).toEqual([Date.parse(late)])
})

test('1.7: an event that is dated ahead counts as of when the relay learnt of it', () => {
  const learnt = { ...look([]), nowMs: NOON }
  expect(withoutErasedOfPush(aPush({ trackingIds: ['GONE0001'], eventTime: late }), learnt)).toEqual({ kind: 'erased', names: [] })
  const poll = aPoll({ asked: 'GONE0001', trackingIds: [], statuses: [{ eventTimestamp: late }] })
  expect(withoutErasedOfPoll(poll, learnt)).toEqual({ kind: 'erased', names: [] })
})
