import fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeContent } from '../../../../src/core/domain/history/content.ts'
import { ANSWERS_MAX } from '../../../../src/core/domain/history/pull-response.ts'
import type { Incoming } from '../../../../src/core/domain/history/recording.ts'
import type { KeptSighting } from '../../../../src/core/domain/history/sightings.ts'
import { parsePush } from '../../../../src/core/domain/ingest/parse-push.ts'
import { createCarrierModelKeeper } from '../../../../src/core/flow/polling/carrier-model.ts'
import { addPushes, noEvidence, type StoredPush } from '../../../../src/upkeep/rebuild/evidence.rules.ts'
import { rebuildParcel, type StoredParcel } from '../../../../src/upkeep/rebuild/rebuild-parcel.rules.ts'
import { aPoll, pushBody } from '../../../support/history/builders.ts'
import { observations, rearranged, type Seen } from '../../../support/history/observations.ts'
import { recordOptions } from '../../../support/history/policy.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { casesOf } from '../../../support/runner/long-form.ts'
import { createMemoryRecording } from '../../../support/store/memory-recording.ts'

const model = createCarrierModelKeeper({ now: () => NOON }).current()
const RUNS = casesOf(2000, 60)

const incomingPush = (body: Uint8Array): Incoming => parsePush({ body, contentEncoding: null, receivedAtMs: NOON, keyIndex: 0 })

interface Stored {
  readonly parcel: StoredParcel
  readonly pushes: readonly StoredPush[]
}

function incoming({ observation, body }: Seen): Incoming {
  return observation.kind === 'poll' ? { kind: 'poll', observation, watch: true } : incomingPush(body)
}

/** Returns the parcels after these observations, each recorded a minute after the one before. */
function stored(all: readonly Incoming[]): readonly Stored[] {
  const memory = createMemoryRecording({ rules: recordOptions, model, endpoints: [], loads: 'whole' })
  for (const [nth, one] of all.entries()) memory.record([one], NOON + nth * 60_000)
  return memory.stored()
}

function rebuilt({ parcel, pushes }: Stored) {
  const evidence = noEvidence()
  addPushes(evidence, pushes)
  let sequence = 1_000_000
  return rebuildParcel(parcel, { evidence, elsewhere: new Map(), knownTo: Number.POSITIVE_INFINITY, nextSequence: () => sequence++ })
}

function corrected({ parcel, pushes }: Stored): Stored {
  const { correction } = rebuilt({ parcel, pushes })
  if (correction === null) return { parcel, pushes }
  const gone = new Set(correction.dropped.map(({ sequence }) => sequence))
  const saved = new Set(correction.saved.map(({ sequence }) => sequence))
  const kept = parcel.sightings.filter(({ sequence }) => !gone.has(sequence) && !saved.has(sequence))
  return { pushes, parcel: { ...parcel, state: correction.state, sightings: [...kept, ...correction.saved] } }
}

const bySequence = (sightings: readonly KeptSighting[]) => sightings.toSorted((a, b) => a.sequence - b.sequence)

/** Whether no answer was dropped. Only then do the bytes contain every sighting. */
const isWhole = ({ parcel: { answers } }: Stored) =>
  [...Map.groupBy(answers, ({ answer }) => answer.language).values()].every((inLanguage) => inLanguage.length < ANSWERS_MAX)

const arranged = observations.chain((all) => rearranged(all))

test('a rebuild gives the recorded history for any order and repetition', () => {
  let fromBytes = 0
  let ofSeveral = 0
  const check = fc.check(
    fc.property(arranged, (all) => {
      for (const one of stored(all.map(incoming))) {
        const { source, changes, correction, stored: before, derived, conflicts } = rebuilt(one)
        expect({ changes, correction, conflicts, derived }).toEqual({ changes: [], correction: null, conflicts: [], derived: before })
        if (source === 'bytes') fromBytes++
        if (one.parcel.sightings.length > 3) ofSeveral++
      }
    }),
    { numRuns: RUNS, seed: 20261127, endOnFailure: true },
  )
  if (check.failed) throw check.errorInstance
  expect([fromBytes > RUNS, ofSeveral > RUNS / 5]).toEqual([true, true])
})

test('a rebuild restores overwritten sightings of pushes from their bytes', () => {
  const check = fc.check(
    fc.property(arranged, fc.nat(), fc.constantFrom('Oslo', 'Rome', ''), (all, nth, location) => {
      for (const one of stored(all.map(incoming)).filter(isWhole)) {
        const pushed = one.parcel.sightings.filter(({ sighting }) => sighting.source === 'push')
        const victim = pushed[nth % Math.max(1, pushed.length)]
        if (victim === undefined || victim.sighting.location === location) continue
        const sighting = { ...victim.sighting, location }
        const wrong = { ...victim, sighting, content: encodeContent(sighting) }
        const others = one.parcel.sightings.filter((kept) => kept !== victim)
        // Skip this case if another push has the same content and time: two rows would have the same key, which no store allows.
        if (others.some(({ content, sighting: other }) => content === wrong.content && other.instant.text === sighting.instant.text))
          continue
        const damaged = { ...one, parcel: { ...one.parcel, sightings: [...others, wrong] } }
        const after = corrected(damaged)
        expect(bySequence(after.parcel.sightings)).toEqual(bySequence(one.parcel.sightings))
        expect(rebuilt(after)).toMatchObject({ correction: null, changes: [] })
      }
    }),
    { numRuns: RUNS, seed: 20261128, endOnFailure: true },
  )
  if (check.failed) throw check.errorInstance
})

test('a lost history is restored as new entries that count as sent', () => {
  const check = fc.check(
    fc.property(arranged, (all) => {
      for (const one of stored(all.map(incoming)).filter(isWhole)) {
        const state = { ...one.parcel.state, entryCount: 0, latest: null, firstPushedAtMs: null }
        const lost = { ...one, parcel: { ...one.parcel, state, sightings: [] } }
        const { changes, correction } = rebuilt(lost)
        const { parcel } = corrected(lost)
        const shown = (sightings: readonly KeptSighting[]) =>
          sightings.map(({ content, sighting, listing }) => [sighting.instant.text, content, listing].join()).sort()
        expect(shown(parcel.sightings)).toEqual(shown(one.parcel.sightings))
        expect(parcel.sightings.every(({ audience }) => audience.kind === 'all')).toBe(true)
        expect(parcel.state.entryCount).toBe(one.parcel.state.entryCount)
        expect(changes.filter(({ kind }) => kind === 'entry')).toHaveLength(one.parcel.state.entryCount)
        for (const { kind, payloadRef } of correction?.feed ?? []) expect([kind, payloadRef]).toEqual(['entry', null])
      }
    }),
    { numRuns: RUNS, seed: 20261129, endOnFailure: true },
  )
  if (check.failed) throw check.errorInstance
})

test('a parcel whose answers may have been dropped is rebuilt from its sightings', () => {
  const polls = Array.from({ length: 12 }, (_, nth): Incoming => {
    const observation = aPoll({ askedAtMs: NOON + nth, text: `Arrived ${nth}` })
    return { kind: 'poll', observation, watch: true }
  })
  const [one] = stored([...polls, incomingPush(pushBody())])
  if (one === undefined) throw new Error('nothing was recorded')
  expect(one.parcel.answers.length).toBeLessThan(12)
  expect(rebuilt(one)).toMatchObject({ source: 'sightings', correction: null })
})

test('two stored entries that are one by the present rule are united under the older id', () => {
  const [one] = stored([incomingPush(pushBody({ location: 'Lund' })), incomingPush(pushBody({ location: '', texts: { fi: 'Saapunut' } }))])
  if (one === undefined) throw new Error('nothing was recorded')
  const [first, second] = bySequence(one.parcel.sightings)
  if (first === undefined || second === undefined) throw new Error('there are two sightings')
  // Act as if an older version had read another location in the second push.
  const sighting = { ...second.sighting, location: 'Oslo' }
  const apart = { ...second, sighting, content: encodeContent(sighting) }
  const before = { ...one, parcel: { ...one.parcel, sightings: [first, apart], state: { ...one.parcel.state, entryCount: 2 } } }
  const { changes, correction } = rebuilt(before)
  expect(changes).toMatchObject([{ kind: 'united', entry: { sequence: first.sequence } }])
  expect(correction?.feed).toMatchObject([{ kind: 'united', entry: first.sequence, payloadRef: null }])
  expect(correction?.state.entryCount).toBe(1)
})
