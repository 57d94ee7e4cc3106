import { expect, test } from 'vitest'
import { spanMs } from '../../../src/trial/sandbox/parcel-plan.ts'
import { anchorMs, entriesOf, stillSandbox } from './sandbox-fixture.ts'

const words = (json: string) => entriesOf(json).map(({ status, detailedStatus, location }) => [status, detailedStatus, location])
const instants = (json: string) => entriesOf(json).map(({ eventTimestamp }) => Date.parse(String(eventTimestamp)))

test('with `live`, a parcel’s life begins now and lasts its planned time divided by the speed', async () => {
  const options = { parcels: 40, hard: 0.3, mix: { wholeSecondPulls: 0 } }
  await using planned = await stillSandbox(options)
  await using live = await stillSandbox({ ...options, live: true, paused: true, speed: 3600 })
  expect(live.now()).toBe(anchorMs)
  await live.advance(spanMs / 3600 / 2)
  expect(live.finished()).toBe(false)
  await live.advance(spanMs / 3600 / 2)
  expect(live.finished()).toBe(true)
  await planned.finish()
  expect(live.world.tally).toEqual(planned.world.tally)
  const ends = live.world.parcels().map(({ answers }) => Math.max(...instants(answers.en)))
  for (const [nth, { answers }] of live.world.parcels().entries()) {
    // The life has the same events in the same order, but begins now and is faster.
    expect(words(answers.en)).toEqual(words(planned.world.parcels()[nth]?.answers.en ?? ''))
    for (const atMs of instants(answers.en)) expect(atMs).toBeGreaterThanOrEqual(anchorMs)
  }
  expect(Math.max(...ends)).toBeLessThanOrEqual(anchorMs + spanMs / 3600)
  expect(Math.max(...ends)).toBeGreaterThan(anchorMs + spanMs / 3600 / 2)
})

test('live requires a speed', async () => {
  await expect(stillSandbox({ live: true, speed: 0 })).rejects.toThrow('live')
})
