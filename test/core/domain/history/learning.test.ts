import fc from 'fast-check'
import { expect, test } from 'vitest'
import { noAudience } from '../../../../src/core/domain/history/audience.ts'
import { deriveEntries, type FirstReport, type Learning, learningOf } from '../../../../src/core/domain/history/history.ts'
import type { Incoming } from '../../../../src/core/domain/history/recording.ts'
import { type KeptSighting, sightingId, sightingsOf, uniteSightings } from '../../../../src/core/domain/history/sightings.ts'
import { parsePush } from '../../../../src/core/domain/ingest/parse-push.ts'
import { createCarrierModelKeeper } from '../../../../src/core/flow/polling/carrier-model.ts'
import { aPoll, aPush } from '../../../support/history/builders.ts'
import { observations, rearranged, type Seen } from '../../../support/history/observations.ts'
import { recordOptions } from '../../../support/history/policy.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { casesOf } from '../../../support/runner/long-form.ts'
import { createMemoryRecording } from '../../../support/store/memory-recording.ts'

const RUNS = casesOf(1000, 150)
const model = createCarrierModelKeeper({ now: () => NOON }).current()

function recordInTurn(all: readonly Seen[]) {
  const memory = createMemoryRecording({ rules: recordOptions, model, endpoints: [], loads: 'whole' })
  for (const [at, seen] of all.entries()) memory.record([incoming(seen)], NOON + at * 1000)
  return memory.parcels()
}

function incoming({ observation, body }: Seen): Incoming {
  if (observation.kind === 'poll') return { kind: 'poll', observation, watch: true }
  return parsePush({ body: Uint8Array.from(body), contentEncoding: null, receivedAtMs: NOON, keyIndex: 0 })
}

/** Returns when `source` first reported any of these sightings. */
function firstReport(all: readonly Seen[], members: readonly KeptSighting[], source: FirstReport['source']): FirstReport | null {
  const wanted = new Set(members.filter(({ sighting }) => sighting.source === source).map(sightingId))
  const at = all.findIndex(({ observation }) => sightingsOf(observation).some((one) => wanted.has(sightingId(one))))
  return at === -1 ? null : { source, atMs: NOON + at * 1000 }
}

function expectedOf(all: readonly Seen[], members: readonly KeptSighting[]): Learning | null {
  const reports = [firstReport(all, members, 'push'), firstReport(all, members, 'poll')].filter((one) => one !== null)
  const [first, confirmed = null] = reports.toSorted((a, b) => (a.atMs ?? 0) - (b.atMs ?? 0))
  return first === undefined ? null : { first, confirmed }
}

test('an entry keeps the time of its first sighting despite repeats, later polls and joins', () => {
  const arrivals = observations.chain((all) => rearranged(all))
  let confirmed = 0
  fc.assert(
    fc.property(arrivals, (all) => {
      for (const { sightings } of recordInTurn(all)) {
        for (const entry of deriveEntries(sightings)) {
          const learning = learningOf(entry)
          expect(learning).toEqual(expectedOf(all, entry.members))
          if (learning.confirmed !== null) confirmed++
        }
      }
    }),
    { numRuns: RUNS, seed: 20261126 },
  )
  expect(confirmed).toBeGreaterThan(RUNS / 6)
})

/** Sightings of several parcels. Each sighting has its own sequence. Sightings from before an upgrade have no time. */
const heldByParcels = fc
  .tuple(observations, fc.integer({ min: 0, max: 20 }), fc.infiniteStream(fc.nat(1000)))
  .map(([all, upgradedAt, numbers]) => {
    const used = new Set<number>()
    const nextSequence = (): number => {
      let sequence = 1 + (numbers.next().value ?? 0)
      while (used.has(sequence)) sequence++
      used.add(sequence)
      return sequence
    }
    return all.map(({ observation }) => {
      const listed = new Map(sightingsOf(observation).map((one) => [sightingId(one), one]))
      return [...listed.values()].map((one): KeptSighting => {
        const sequence = nextSequence()
        return { ...one, sequence, learntAtMs: sequence < upgradedAt * 50 ? null : NOON + sequence, audience: noAudience }
      })
    })
  })

test('parcels joined in any order keep when each sighting was first learnt', () => {
  const cases = heldByParcels.chain((parts) => fc.tuple(fc.constant(parts), fc.shuffledSubarray(parts, { minLength: parts.length })))
  fc.assert(
    fc.property(cases, fc.nat(7), ([parts, shuffled], cut) => {
      const learnt = new Map<string, KeptSighting>()
      for (const kept of parts.flat()) {
        const known = learnt.get(sightingId(kept))
        if (known === undefined || kept.sequence < known.sequence) learnt.set(sightingId(kept), kept)
      }
      const [some, others] = [uniteSightings(shuffled.slice(0, cut)).kept, uniteSightings(shuffled.slice(cut)).kept]
      const { kept } = uniteSightings([others, some])
      expect(kept).toHaveLength(learnt.size)
      for (const one of kept) {
        const { sequence, learntAtMs } = learnt.get(sightingId(one)) ?? one
        expect([one.sequence, one.learntAtMs]).toEqual([sequence, learntAtMs])
      }
    }),
    { numRuns: RUNS, seed: 20261127 },
  )
})

test('the source that reported an entry first is known even if the time is not', () => {
  const [pushed] = sightingsOf(aPush({ eventTime: '2026-03-01T10:00:00Z' }))
  const [polled] = sightingsOf(aPoll())
  if (pushed === undefined || polled === undefined) throw new Error('there are no sightings')
  const kept = (one: typeof pushed, sequence: number, learntAtMs: number | null) => ({ ...one, sequence, learntAtMs, audience: noAudience })
  const [entry] = deriveEntries([kept(polled, 3, null), kept(pushed, 8, NOON)])
  expect(entry === undefined ? null : learningOf(entry)).toEqual({
    first: { source: 'poll', atMs: null },
    confirmed: { source: 'push', atMs: NOON },
  })
})
