import { expect, test } from 'vitest'
import type { Incoming } from '../../../../src/core/domain/history/recording.ts'
import { parsePush } from '../../../../src/core/domain/ingest/parse-push.ts'
import { createCarrierModelKeeper } from '../../../../src/core/flow/polling/carrier-model.ts'
import { aPoll, pushBody } from '../../../support/history/builders.ts'
import { recordOptions } from '../../../support/history/policy.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { seeded } from '../../../support/runner/seeded.ts'
import { createMemoryRecording } from '../../../support/store/memory-recording.ts'

const NAMES = Array.from({ length: 8 }, (_, nth) => `NAME000${nth}`)
const ROUNDS = 60
const SEEDS = 40

test.each(Array.from({ length: SEEDS }, (_, seed) => seed))('an erased identifier never comes back, whatever names it: seed %i', (seed) => {
  const random = seeded(seed)
  const pick = () => NAMES[Math.floor(random() * NAMES.length)] ?? ''
  const model = createCarrierModelKeeper({ now: () => NOON }).current()
  const loads = (['whole', 'first', 'certain', 'asked'] as const)[seed % 4] ?? 'whole'
  const store = createMemoryRecording({ rules: recordOptions, model, endpoints: [], loads })
  const erased = new Set<string>()
  const observe = (nth: number): Incoming => {
    const trackingIds = [...new Set([pick(), pick(), pick()].slice(0, 1 + Math.floor(random() * 3)))]
    const eventTime = new Date(NOON + Math.floor(random() * 20) * 1000).toISOString()
    if (random() < 0.7) {
      const body = pushBody({ trackingIds, eventTime, location: `Town ${nth % 5}` })
      return parsePush({ body, contentEncoding: null, receivedAtMs: NOON, keyIndex: 0 })
    }
    const statuses = [{ eventTimestamp: eventTime }]
    return { kind: 'poll', watch: false, observation: aPoll({ asked: pick(), trackingIds, statuses, askedAtMs: NOON + nth }) }
  }
  for (let round = 0; round < ROUNDS; round++) {
    const decided = store.record(
      Array.from({ length: 1 + Math.floor(random() * 4) }, (_, nth) => observe(round * 4 + nth)),
      NOON,
    )
    expect(decided.failures).toEqual([])
    for (const { value } of decided.erased) erased.add(value)
    if (random() < 0.2) {
      const gone = pick()
      for (const { identifiers } of store.parcels()) if (identifiers.includes(gone)) for (const value of identifiers) erased.add(value)
      store.erase(gone, NOON)
    }
    expect(store.parcels().flatMap(({ identifiers }) => identifiers.filter((value) => erased.has(value)))).toEqual([])
  }
  expect(erased.size).toBeGreaterThan(0)
})
