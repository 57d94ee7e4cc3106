import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ChangeSet } from '../../../../src/core/domain/history/change-set.ts'
import type { Incoming } from '../../../../src/core/domain/history/recording.ts'
import { parsePush } from '../../../../src/core/domain/ingest/parse-push.ts'
import { createCarrierModelKeeper } from '../../../../src/core/flow/polling/carrier-model.ts'
import { endpointState } from '../../../support/delivery/endpoint-state.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { answers, recordAll } from '../../../support/history/model.ts'
import { copiesAroundAnother, everyOrder, observations, rearranged, type Seen } from '../../../support/history/observations.ts'
import { recordOptions } from '../../../support/history/policy.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { casesOf, LONG } from '../../../support/runner/long-form.ts'
import { createMemoryRecording, type Loads } from '../../../support/store/memory-recording.ts'

/** The number of random cases. `npm run faults` runs more. */
const RUNS = LONG ? 10_000 : casesOf(1000, 120)
const model = createCarrierModelKeeper({ now: () => NOON }).current()
const endpoints = [endpointState({ backfill: true }, { backfilled: { from: 0, to: null } })]
const recording = (loads: Loads) => createMemoryRecording({ rules: recordOptions, model, endpoints, loads })

function incoming({ observation, body }: Seen): Incoming {
  return observation.kind === 'poll' ? { kind: 'poll', observation, watch: true } : push(body)
}

function push(body: Uint8Array): Incoming {
  return parsePush({ body: Uint8Array.from(body), contentEncoding: null, receivedAtMs: NOON, keyIndex: 0 })
}

/** Cuts observations into batches of these sizes, which are used in turn. */
function inBatches(all: readonly Seen[], sizes: readonly number[]): readonly (readonly Incoming[])[] {
  const batches: Incoming[][] = []
  let at = 0
  for (let turn = 0; at < all.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1
    batches.push(all.slice(at, at + size).map(incoming))
    at += size
  }
  return batches
}

const cases = fc.tuple(
  observations.chain((all) => fc.tuple(fc.constant(all), rearranged(all))),
  fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 4 }),
)

test('P8: any order, repetition and batching of observations gives the same bytes as the model', () => {
  let joins = 0
  fc.assert(
    fc.property(cases, ([[all, again], sizes]) => {
      const memory = recording('whole')
      for (const batch of inBatches(again, sizes)) joins += memory.record(batch, NOON).writes.length - 1
      expect(answers(memory.parcels())).toEqual(answers(recordAll(all)))
    }),
    { numRuns: RUNS, seed: 20261124 },
  )
  expect(joins).toBeGreaterThan(RUNS / 6)
})

test('P8: copies of a listing around another listing give the same bytes in every order', () => {
  const expected = answers(recordAll(copiesAroundAnother))
  for (const order of everyOrder(copiesAroundAnother)) {
    for (const again of [order, order.toReversed()]) {
      for (const size of [1, 2, 3, 8]) {
        const memory = recording('whole')
        for (const batch of inBatches([...order, ...again], [size])) memory.record(batch, NOON)
        expect(answers(memory.parcels())).toEqual(expected)
      }
    }
  }
})

test('a batch is decided the same way even if more was loaded than needed', () => {
  fc.assert(
    fc.property(cases, ([[, again], sizes]) => {
      const whole = recording('whole')
      const others = [recording('first'), recording('certain'), recording('asked')]
      for (const batch of inBatches(again, sizes)) {
        const decided = whole.record(batch, NOON)
        for (const other of others) expect(other.record(batch, NOON)).toEqual(decided)
      }
    }),
    { numRuns: casesOf(500, 60), seed: 20261125 },
  )
})

test('a decision is plain data: it can be printed, and read back unchanged', () => {
  const memory = recording('whole')
  const decided = memory.record([push(pushBody()), push(pushBody({ trackingIds: ['2001'] })), push(Buffer.from('{'))], NOON)
  expect(structuredClone(decided)).toEqual(decided)
  expect(kindsOf(decided)).toEqual(['recorded', 'recorded', 'quarantined'])
})

test('an observation that makes `decide` throw is quarantined alone, and uses no sequence', () => {
  const broken = {
    ...push(pushBody({ trackingIds: ['2001'] })),
    reading: { ok: true, observation: { kind: 'push', trackingIds: ['2001'] } },
  } as unknown as Incoming
  const [one, other] = [recording('whole'), recording('whole')]
  const beside = one.record([push(pushBody()), broken, push(pushBody({ trackingIds: ['3001'] }))], NOON)
  const alone = other.record([push(pushBody()), push(pushBody({ trackingIds: ['3001'] }))], NOON)
  expect(kindsOf(beside)).toEqual(['recorded', 'quarantined', 'recorded'])
  expect(beside.failures).toHaveLength(1)
  expect(one.parcels()).toEqual(other.parcels())
  expect({ ...beside.next, inboxId: 0 }).toEqual({ ...alone.next, inboxId: 0 })
})

function kindsOf({ recorded }: ChangeSet): readonly string[] {
  return recorded.map(({ outcome }) => outcome.kind)
}
