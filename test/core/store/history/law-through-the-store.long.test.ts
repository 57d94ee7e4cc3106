import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openWriteSide } from '../../../../src/assembly/open-write-side.ts'
import { encodeAll, encodeLatest } from '../../../../src/core/domain/history/pull-response.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import type { ReadSide } from '../../../../src/core/store/read-store.ts'
import { answers, recordAll } from '../../../support/history/model.ts'
import { copiesAroundAnother, everyOrder, observations, rearranged, type Seen } from '../../../support/history/observations.ts'
import { incomingOf, strictLog } from '../../../support/history/observed.ts'
import { deliverOptions, recordOptions } from '../../../support/history/policy.ts'
import { LONG, runsOn } from '../../../support/runner/long-form.ts'
import { engines, withPlace } from '../../../support/store/engines.ts'

const RUNS = LONG ? 250 : 60

const IDENTIFIERS = ['1001', '1002', '2001', '2002', 'AB123456789SE', 'CD123456789SE']
const clock = { now: () => Date.UTC(2026, 2, 1, 15), monotonic: () => performance.now() }

async function answersIn(reads: ReadSide): Promise<Readonly<Record<string, string>>> {
  const answers: Record<string, string> = {}
  for (const id of IDENTIFIERS) {
    const view = await reads.findParcel(id)
    if (view === null) continue
    for (const language of ['en', 'sv']) {
      answers[`${id}/all?${language}`] = encodeAll(view, [language, 'en', 'sv']).body
      answers[`${id}/latest?${language}`] = encodeLatest(view, [language, 'en', 'sv'])?.body ?? 'none'
    }
  }
  return answers
}

/** Records batches in a new store. Returns its answers before and after a restart. */
async function served(engine: Engine, batches: readonly (readonly Seen[])[]) {
  return await withPlace(engine, async (path) => {
    const open = () => openWriteSide({ sqlitePath: path, engine, record: recordOptions, deliver: deliverOptions }, clock, strictLog)
    const look = async () => {
      const reads = engine.openReadStore(path)
      const answers = await answersIn(reads)
      await reads.close()
      return answers
    }
    const writes = await open()
    for (const batch of batches) await writes.record(batch.map((seen) => incomingOf(seen, clock.now())))
    const before = await look()
    await writes.close()
    const again = await open()
    const after = await look()
    await again.close()
    return { before, after }
  })
}

/** Generates observations, and the same observations as batches in another order, in which some are repeated or split. */
const told = fc
  .tuple(
    observations.chain((all) => fc.tuple(fc.constant(all), rearranged(all))),
    fc.integer({ min: 1, max: 5 }),
  )
  .map(([[all, again], size]) => ({
    all,
    batches: Array.from({ length: Math.ceil(again.length / size) }, (_, at) => again.slice(at * size, at * size + size)),
  }))

test.each(engines)(
  'the store gives the model’s bytes in any order and after a restart, on $name',
  async (engine) => {
    await fc.assert(
      fc.asyncProperty(told, async ({ all, batches }) => {
        const model = answers(recordAll(all))
        expect(await served(engine, [all])).toEqual({ before: model, after: model })
        expect(await served(engine, batches)).toEqual({ before: model, after: model })
      }),
      { numRuns: runsOn(engine, RUNS, 8), seed: 20261121 },
    )
  },
  600_000,
)

test('every engine serves the same bytes for the same observations, even after a restart', async () => {
  const runs = Math.min(...engines.map((engine) => runsOn(engine, RUNS, 6)))
  await fc.assert(
    fc.asyncProperty(told, async ({ batches }) => {
      const [first, ...others] = await Promise.all(engines.map((engine) => served(engine, batches)))
      for (const other of others) expect(other).toEqual(first)
    }),
    { numRuns: runs, seed: 20261124 },
  )
})

function inBatches(all: readonly Seen[], size: number): readonly (readonly Seen[])[] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, at * size + size))
}

test.each(engines)(
  'copies of a listing around another listing give the same bytes in any order on $name',
  async (engine) => {
    const model = answers(recordAll(copiesAroundAnother))
    const orders = everyOrder(copiesAroundAnother)
    for (const [at, order] of orders.slice(0, runsOn(engine, orders.length, 4)).entries()) {
      const again = inBatches([...order, ...order.toReversed()], 1 + (at % 4))
      expect(await served(engine, inBatches(order, 1))).toEqual({ before: model, after: model })
      expect(await served(engine, again)).toEqual({ before: model, after: model })
    }
  },
  600_000,
)
