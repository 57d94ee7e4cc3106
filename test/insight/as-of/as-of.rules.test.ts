import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Incoming } from '../../../src/core/domain/history/recording.ts'
import { parsePush } from '../../../src/core/domain/ingest/parse-push.ts'
import { createCarrierModelKeeper } from '../../../src/core/flow/polling/carrier-model.ts'
import { historyAsOf } from '../../../src/insight/as-of/as-of.rules.ts'
import { answers } from '../../support/history/model.ts'
import { observations, type Seen } from '../../support/history/observations.ts'
import { recordOptions } from '../../support/history/policy.ts'
import { answersAsOf, knownOf } from '../../support/insight/known-history.ts'
import { MINUTE_MS, NOON } from '../../support/runner/constants.ts'
import { casesOf, LONG } from '../../support/runner/long-form.ts'
import { createMemoryRecording } from '../../support/store/memory-recording.ts'

const RUNS = LONG ? 20_000 : casesOf(2000, 300)
const model = createCarrierModelKeeper({ now: () => NOON }).current()

function incoming({ observation, body }: Seen): Incoming {
  if (observation.kind === 'poll') return { kind: 'poll', observation, watch: true }
  return parsePush({ body: Uint8Array.from(body), contentEncoding: null, receivedAtMs: NOON, keyIndex: 0 })
}

/** Records batches of observations a minute apart, and the answers that the relay gives after each. */
function recordAll(batches: readonly (readonly Seen[])[]) {
  const memory = createMemoryRecording({ rules: recordOptions, model, endpoints: [], loads: 'certain' })
  const said: Readonly<Record<string, string>>[] = []
  let rows = 0
  for (const [at, batch] of batches.entries()) {
    const { writes } = memory.record(batch.map(incoming), NOON + at * MINUTE_MS)
    rows += writes.flatMap(({ overwritten }) => overwritten).length
    said.push(answers(memory.parcels()))
  }
  return { memory, said, rows }
}

function saidOf(said: Readonly<Record<string, string>>, identifier: string): Readonly<Record<string, string>> {
  const own = Object.entries(said).filter(([name]) => name.startsWith(`${identifier}/`))
  return Object.fromEntries(own.map(([name, body]) => [name.slice(identifier.length + 1), body]))
}

/** Observations in an order of arrival that need not be that of asking, some of them repeated. */
const arrivals = observations
  .chain((all) => fc.shuffledSubarray([...all, ...all], { minLength: all.length }))
  .chain((all) => fc.tuple(fc.constant(all), fc.array(fc.integer({ min: 1, max: 3 }), { minLength: all.length, maxLength: all.length })))
  .map(([all, sizes]) => {
    const batches: Seen[][] = []
    for (let end = 0; end < all.length; end += sizes[batches.length - 1] ?? 1)
      batches.push(all.slice(end, end + (sizes[batches.length] ?? 1)))
    return batches
  })

test('11.1: what was known at each minute is what the relay answered then, or approximate before a join', () => {
  let [asked, approximated, overwrote] = [0, 0, 0]
  fc.assert(
    fc.property(arrivals, (all) => {
      const { memory, said, rows } = recordAll(all)
      overwrote += rows
      for (const { parcel } of memory.stored()) {
        const [record] = memory.parcels().filter(({ identifiers }) => identifiers.includes(parcel.identifiers[0]?.value ?? ''))
        if (record === undefined) throw new Error('no parcel')
        const overwritten = memory.overwritten(parcel.state.parcelId)
        const known = knownOf(record, overwritten)
        const joinedMs = overwritten.findLast(({ value }) => value.includes('"join"'))?.learntAtMs ?? 0
        for (const identifier of record.identifiers) {
          for (const [at, then] of said.entries()) {
            const atMs = NOON + at * MINUTE_MS
            const found = historyAsOf(known, identifier, atMs + MINUTE_MS - 1)
            asked += 1
            expect(found.approximate).toEqual(atMs < joinedMs ? ['join'] : [])
            if (found.approximate.length > 0) approximated += 1
            else expect(answersAsOf(found)).toEqual(saidOf(then, identifier))
          }
        }
      }
    }),
    { numRuns: RUNS, seed: 20261130 },
  )
  expect(overwrote).toBeGreaterThan(RUNS)
  expect(approximated / asked).toBeGreaterThan(0.05)
  expect(approximated / asked).toBeLessThan(0.5)
})
