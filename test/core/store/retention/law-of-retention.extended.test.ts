import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openWriteSide } from '../../../../src/assembly/open-write-side.ts'
import { encodeAll, encodeLatest } from '../../../../src/core/domain/history/pull-response.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import type { ReadSide } from '../../../../src/core/store/read-store.ts'
import { KEPT_FOREVER } from '../../../../src/upkeep/retention/retention.rules.ts'
import { answers, recordAll } from '../../../support/history/model.ts'
import { observations, rearranged, type Seen } from '../../../support/history/observations.ts'
import { incomingOf, strictLog } from '../../../support/history/observed.ts'
import { deliverOptions, recordOptions } from '../../../support/history/policy.ts'
import { HOUR_MS } from '../../../support/runner/constants.ts'
import { LONG, runsOn } from '../../../support/runner/long-form.ts'
import { engines, withPlace } from '../../../support/store/engines.ts'
import { rebuildStore } from '../../../support/store/rebuilt-store.ts'
import { storedRows } from '../../../support/store/stored-rows.ts'

const IDENTIFIERS = ['1001', '1002', '2001', '2002', 'AB123456789SE', 'CD123456789SE']
const START = Date.UTC(2026, 2, 1, 15)
/** So short that each pass removes all bytes. Nothing else is removed. */
const NO_BYTES = { ...KEPT_FOREVER, rawMs: 1 }

async function answersIn(reads: ReadSide): Promise<Readonly<Record<string, string>>> {
  const served: Record<string, string> = {}
  for (const id of IDENTIFIERS) {
    const view = await reads.findParcel(id)
    if (view === null) continue
    for (const language of ['en', 'sv']) {
      served[`${id}/all?${language}`] = encodeAll(view, [language, 'en', 'sv']).body
      served[`${id}/latest?${language}`] = encodeLatest(view, [language, 'en', 'sv'])?.body ?? 'none'
    }
  }
  return served
}

interface Step {
  readonly seen: Seen
  readonly after: 'nothing' | 'retention' | 'restart' | 'rebuild'
}

/** Observations, some of them repeated, with what happens to the store after each. */
const worlds: fc.Arbitrary<readonly Step[]> = observations
  .chain(rearranged)
  .chain((all) =>
    fc.tuple(
      ...all.map((seen) =>
        fc.constantFrom<Step['after']>('nothing', 'retention', 'retention', 'restart', 'rebuild').map((after) => ({ seen, after })),
      ),
    ),
  )

/** Lives through a world. After each step, the store must give the model's answers. Returns how many answers had lost their bytes. */
async function live(engine: Engine, place: string, world: readonly Step[]): Promise<number> {
  let nowMs = START
  const clock = { now: () => nowMs, monotonic: () => nowMs }
  const options = { sqlitePath: place, engine, record: recordOptions, deliver: deliverOptions, retention: NO_BYTES }
  let writes = await openWriteSide(options, clock, strictLog)
  const reads = engine.openReadStore(place)
  try {
    for (const [at, { seen, after }] of world.entries()) {
      await writes.record([incomingOf(seen, clock.now())])
      nowMs += HOUR_MS
      if (after === 'retention') while (!(await writes.prune({ nowMs })).isDone);
      if (after === 'rebuild') await rebuildStore({ writes, reads, now: clock.now })
      if (after === 'restart') {
        await writes.close()
        writes = await openWriteSide(options, clock, strictLog)
      }
      expect(await answersIn(reads)).toEqual(answers(recordAll(world.slice(0, at + 1).map((step) => step.seen))))
    }
    return (await storedRows(place, 'select 1 as one from answer where body is null and decides_order = 1')).length
  } finally {
    await reads.close()
    await writes.close()
  }
}

test.each(engines)(
  '3.2: no retention pass changes an answer in any world, on $name',
  async (engine) => {
    let bare = 0
    await fc.assert(
      fc.asyncProperty(worlds, async (world) => {
        bare += await withPlace(engine, (place) => live(engine, place, world))
      }),
      { numRuns: runsOn(engine, LONG ? 250 : 24, 5), seed: 20261129 },
    )
    expect(bare).toBeGreaterThan(0)
  },
  600_000,
)
