import { describe, expect, test } from 'vitest'
import { type CarrierMood, openCacheModel, type Step } from '../../../support/history/cache-model.ts'
import { HOUR_MS, MINUTE_MS } from '../../../support/runner/constants.ts'
import { casesOf, LONG } from '../../../support/runner/long-form.ts'
import { drawWith, seeded } from '../../../support/runner/seeded.ts'
import { engines } from '../../../support/store/engines.ts'

const PARCELS = 4
const MOODS: readonly CarrierMood[] = ['listed', 'listed', 'english', 'empty', 'not_found', 'not_found', 'down', 'refused']
const PAUSES_MS = [1, MINUTE_MS, 6 * MINUTE_MS, HOUR_MS, 5 * HOUR_MS, 25 * HOUR_MS, 20 * 24 * HOUR_MS]

/** Chooses a random step. Most steps are requests, and many are repeated, so that the cache is used. */
function stepOf(random: () => number): Step {
  const { below } = drawWith(random)
  const parcel = below(PARCELS)
  const kind = random()
  if (kind < 0.1) return { kind: 'push', parcel }
  if (kind < 0.15) return { kind: 'watch', parcel }
  if (kind < 0.18) return { kind: 'unwatch', parcel }
  if (kind < 0.2) return { kind: 'refresh', parcel }
  if (kind < 0.3) return { kind: 'polls' }
  if (kind < 0.4) return { kind: 'pass', ms: PAUSES_MS[below(PAUSES_MS.length)] ?? 1 }
  if (kind < 0.5) return { kind: 'carrier', parcel, mood: MOODS[below(MOODS.length)] ?? 'listed' }
  const language = [undefined, 'en', 'sv', 'sv-se', 'fi'][below(5)]
  return { kind: 'ask', parcel, language, question: random() < 0.8 ? 'all' : 'latest', pushedMeanwhile: random() < 0.1 }
}

describe.each(engines)('answers from the cache on $name', (engine) => {
  const steps = LONG ? 20_000 : engine.name === 'sqlite' ? casesOf(400, 150) : casesOf(100, 50)

  test.each([1, 2])('a cache changes neither the answers of a relay nor its calls to the carrier (seed %i)', async (seed) => {
    const options = { refreshOlderThanMs: seed === 1 ? null : 3 * HOUR_MS }
    const [kept, fresh] = [await openCacheModel(engine, 1_000_000, options), await openCacheModel(engine, 0, options)]
    const random = seeded(seed)
    const done: Step[] = []
    for (let at = 0; at < steps; at++) {
      const step = stepOf(random)
      done.push(step)
      const [seen, owed] = [await kept(step), await fresh(step)]
      if (JSON.stringify(seen) !== JSON.stringify(owed))
        expect({ seen, after: done.slice(-12) }).toEqual({ seen: owed, after: done.slice(-12) })
    }
  })

  test('6.1: a request revives a parcel stopped as unknown after its "not found" has expired', async () => {
    const step = await openCacheModel(engine, 1_000_000)
    const ask: Step = { kind: 'ask', parcel: 1, language: 'en', question: 'all', pushedMeanwhile: false }
    await step({ kind: 'push', parcel: 1 })
    await step({ kind: 'watch', parcel: 1 })
    await step(ask)
    await step({ kind: 'carrier', parcel: 1, mood: 'not_found' })
    await step({ kind: 'pass', ms: 4 * HOUR_MS })
    expect(await step({ kind: 'polls' })).toContain('unknown')
    await step({ kind: 'pass', ms: HOUR_MS })
    await step(ask)
    await step({ kind: 'pass', ms: 25 * HOUR_MS })
    await step({ kind: 'carrier', parcel: 1, mood: 'listed' })
    await step(ask)
    await step({ kind: 'pass', ms: 5 * HOUR_MS })
    expect(await step({ kind: 'polls' })).toContain('recorded')
  })
})
