import fc from 'fast-check'
import { expect, test } from 'vitest'
import { noAudience } from '../../../../src/core/domain/history/audience.ts'
import { canonicalSighting } from '../../../../src/core/domain/history/content.ts'
import { deriveEntries, languagesOf } from '../../../../src/core/domain/history/history.ts'
import { joinedKey, keyOf, keysFit, precisionRank, type SightingKey } from '../../../../src/core/domain/history/observation.ts'
import { encodeAll, encodeLatest, parseAllAnswer } from '../../../../src/core/domain/history/pull-response.ts'
import { type KeptSighting, sightingsOf } from '../../../../src/core/domain/history/sightings.ts'
import { answerBody, aPoll, aPush, readBack } from '../../../support/history/builders.ts'
import { type Observation, observations } from '../../../support/history/observations.ts'
import { emptyParcel, observe, presentRecord } from '../../../support/history/parcel-record.ts'
import { HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { casesOf } from '../../../support/runner/long-form.ts'

const present = (...observations: readonly Observation[]) => presentRecord(observations.reduce(observe, emptyParcel))
const entriesOf = (...observations: readonly Observation[]) => present(...observations).entries

test('2.5: an entry is the same whether its sighting comes once or twice', () => {
  const saidOf = (sightings: readonly KeptSighting[]) => deriveEntries(sightings).map((entry) => ({ ...entry, members: [] }))
  const twice = fc.property(observations, (seen) => {
    for (const one of seen.flatMap(({ observation }) => sightingsOf(observation))) {
      const kept = { ...one, sequence: 1, learntAtMs: null, audience: noAudience }
      const unsaid = { ...kept, sighting: { ...one.sighting, displayToConsumer: null } }
      for (const lone of [kept, unsaid]) expect(saidOf([lone])).toEqual(saidOf([lone, { ...lone, listing: one.listing + 1 }]))
    }
  })
  fc.assert(twice, { numRuns: casesOf(200, 50), seed: 20261121 })
})

test('2.1: sightings that differ only in their texts are one entry', () => {
  expect(entriesOf(aPush({ texts: { sv: 'Framme' } }), aPush({ texts: { sv: 'Ankommet' } }))).toHaveLength(1)
})

test('4.1: an entry seen by push and by poll has the languages of both', () => {
  const [entry] = entriesOf(aPush({ texts: { sv: 'Framme' } }), aPoll({ language: 'en', text: 'Arrived' }))
  expect(entry && languagesOf(entry)).toEqual(['en', 'sv'])
})

test('2.2: a whole-second poll and a millisecond push of that second are one entry', () => {
  const entries = entriesOf(
    aPush({ eventTime: '2026-03-01T10:00:00.250Z' }),
    aPoll({ statuses: [{ eventTimestamp: '2026-03-01T10:00:00Z' }] }),
  )
  expect(entries.map((entry) => entry.eventTimestamp)).toEqual(['2026-03-01T10:00:00Z'])
})

test('2.2: zeros do not count as milliseconds', () => {
  expect(entriesOf(aPush({ eventTime: '2026-03-01T10:00:00.000Z' }), aPush({ eventTime: '2026-03-01T10:00:00.250Z' }))).toHaveLength(1)
})

test('2.2: different milliseconds of one second are different entries', () => {
  expect(entriesOf(aPush({ eventTime: '2026-03-01T10:00:00.250Z' }), aPush({ eventTime: '2026-03-01T10:00:00.251Z' }))).toHaveLength(2)
})

test('2.2: an empty location fits every location, and two locations make two entries', () => {
  expect(entriesOf(aPush({ location: null }), aPush({ location: 'Lund' }))).toHaveLength(1)
  expect(entriesOf(aPush({ location: 'Umeå' }), aPush({ location: 'Lund' }))).toHaveLength(2)
})

test('2.3: the most detailed sighting founds an entry, whichever came first', () => {
  const whole = aPush({ eventTime: '2026-03-01T10:00:00Z', location: null })
  const early = aPush({ eventTime: '2026-03-01T10:00:00.100Z', location: 'Lund' })
  const late = aPush({ eventTime: '2026-03-01T10:00:00.900Z', location: 'Lund' })
  for (const order of [
    [whole, early, late],
    [late, early, whole],
  ]) {
    const entries = entriesOf(...order)
    expect(entries).toHaveLength(2)
    expect(entries.map((entry) => entry.members.length)).toEqual(entries[0]?.eventTimestamp === '2026-03-01T10:00:00Z' ? [2, 1] : [1, 2])
  }
})

/** Follows DOMAIN 2.3 literally: compares each sighting, in the order of joining, with every entry. Returns the sightings of each entry. */
function foundPlainly(sightings: readonly KeptSighting[]): readonly (readonly KeptSighting[])[] {
  const entries: { key: SightingKey; readonly members: KeptSighting[] }[] = []
  const equal = (a: SightingKey, b: SightingKey) => a.whole === b.whole && a.atMs === b.atMs && a.location === b.location
  const place = ({ sighting, ordinal, content, listing }: KeptSighting) => {
    const { atMs, whole, location } = keyOf(sighting)
    return [precisionRank(keyOf(sighting)), Number(whole), atMs, location, ordinal, canonicalSighting(sighting, content), listing] as const
  }
  const before = (a: KeptSighting, b: KeptSighting) => {
    const [first, second] = [place(a), place(b)]
    const at = first.findIndex((value, nth) => value !== second[nth])
    return at === -1 ? 0 : (first[at] ?? '') < (second[at] ?? '') ? -1 : 1
  }
  for (const kept of sightings.toSorted(before)) {
    const key = keyOf(kept.sighting)
    const open = entries.filter(
      (entry) => keysFit(entry.key, key) && (kept.listing === 0 || entry.members.every(({ listing }) => listing !== kept.listing)),
    )
    const entry = open.find((one) => equal(one.key, key)) ?? open[0]
    entry?.members.push(kept)
    if (entry === undefined) entries.push({ key, members: [kept] })
    else entry.key = joinedKey(entry.key, key)
  }
  return entries.map(({ members }) => members)
}

test('2.3: a sighting joins the fitting entry with its key, or else the first fitting entry', () => {
  const sighting = fc.record({
    eventTime: fc.constantFrom(...['', '.250', '.500', '.750'].map((fraction) => `2026-03-01T10:00:00${fraction}Z`)),
    location: fc.constantFrom(null, null, 'Lund', 'Umeå'),
    word: fc.constantFrom('Arrived', 'Here'),
    listing: fc.nat(5),
    ordinal: fc.nat(2),
  })
  const group = fc.property(fc.array(sighting, { minLength: 2, maxLength: 24 }), (listed) => {
    const kept = listed.flatMap(({ eventTime, location, word, listing, ordinal }, at) =>
      sightingsOf(aPush({ eventTime, location, texts: { en: word } })).map((one) => ({
        ...one,
        listing,
        ordinal,
        sequence: at + 1,
        learntAtMs: null,
        audience: noAudience,
      })),
    )
    expect(deriveEntries(kept).map(({ members }) => members)).toEqual(foundPlainly(kept))
  })
  fc.assert(group, { numRuns: casesOf(2000, 300), seed: 20261123 })
})

test('2.4: equal pushes are one entry', () => {
  expect(entriesOf(aPush(), aPush(), aPush())).toHaveLength(1)
})

test('2.4: k equal entries of one answer are k entries, however often they are reported', () => {
  const twice = aPoll({ statuses: [{}, {}] })
  const again = aPoll({ statuses: [{}, {}], askedAtMs: NOON + HOUR_MS, language: 'sv' })
  expect(entriesOf(aPush(), twice, again, aPush())).toHaveLength(2)
})

test('2.5: an entry is served as in the last-asked answer, even if that gives no location', () => {
  const push = aPush({ location: 'Lund', displayToConsumer: false })
  const early = aPoll({ askedAtMs: NOON, statuses: [{ location: 'Lund', displayToConsumer: false, consumerDescription: null }] })
  const late = aPoll({ askedAtMs: NOON + HOUR_MS, statuses: [{ location: '', displayToConsumer: true }] })
  const [entry] = entriesOf(late, push, early)
  expect(entry).toMatchObject({ location: '', displayToConsumer: true })
})

test('2.5: a text withdrawn by a later answer is served as withdrawn', () => {
  const source = present(
    aPoll({ askedAtMs: NOON, statuses: [{ consumerDescription: 'Soon' }] }),
    aPoll({ askedAtMs: NOON + HOUR_MS, statuses: [{ consumerDescription: null, detailedStatusDescription: '' }] }),
  )
  expect(readBack(encodeAll(source, ['en']).body)).toMatchObject({
    statuses: [{ consumerDescription: null, detailedStatusDescription: '' }],
  })
})

test('2.5: if no poll gave a text, the non-empty pushed text with the greatest bytes is served', () => {
  const source = present(
    aPush({ texts: { sv: '' }, distributionType: 'Home' }),
    aPush({ texts: { sv: 'A' }, distributionType: '' }),
    aPush({ texts: { sv: 'Z' } }),
  )
  expect(source.entries[0]?.texts.sv?.detailed).toBe('Z')
  expect(source.distributionType).toBe('Mailbox')
})

test('2.5: trackingIds are ordered as in the last-asked answer, then the others by bytes', () => {
  const source = present(
    aPush({ trackingIds: ['1009', '1005', '1001'] }),
    aPoll({ askedAtMs: NOON, trackingIds: ['1001', '1005'] }),
    aPoll({ askedAtMs: NOON + HOUR_MS, trackingIds: ['1005', '1001'] }),
  )
  expect(source.trackingIds).toEqual(['1005', '1001', '1009'])
})

test('2.6: an entry that is not for consumers is always served without a text for them', () => {
  const source = present(aPush({ displayToConsumer: false, consumer: { en: 'Leaked' } }))
  expect(encodeAll(source, ['en']).body).not.toContain('Leaked')
  expect(readBack(encodeAll(source, ['en']).body)).toMatchObject({ statuses: [{ consumerDescription: null, displayToConsumer: false }] })
})

test('2.7: unknown fields of polls are served after the known ones, and numbers as written', () => {
  const written = answerBody({ statuses: [{ weight: 1 }], extra: { carrierNote: { deep: [1] } } }).toString()
  const body = Buffer.from(written.replace('"weight":1', '"weight":12345678901234567890,"tiny":1e400,"zero":-0'))
  const reading = parseAllAnswer(body, { asked: 'AB123456789SE', language: 'en', contentLanguage: null, askedAtMs: NOON })
  if (!reading.ok) throw new Error(reading.reason)
  const source = present(reading.observation)
  const served = encodeAll(source, ['en']).body
  expect(served).toContain('"displayToConsumer":true,"weight":12345678901234567890,"tiny":1e400,"zero":-0}')
  expect(served.endsWith('"distributionType":"Mailbox","carrierNote":{"deep":[1]}}')).toBe(true)
})

test('2.8: an entry that a later answer does not list stays', () => {
  expect(entriesOf(aPoll({ askedAtMs: NOON }), aPoll({ askedAtMs: NOON + HOUR_MS, statuses: [] }))).toHaveLength(1)
})

test('3.1: entries are newest first, and an answer decides the order of equal instants', () => {
  const at = (detailedStatus: string, eventTimestamp = '2026-03-01T10:00:00Z') => ({ detailedStatus, eventTimestamp })
  const answer = aPoll({ statuses: [at('B'), at('C'), at('A'), at('X', '2026-03-01T09:00:00Z')] })
  const outside = aPush({ detailedStatus: 'Z', eventTime: '2026-03-01T10:00:00.000Z' })
  const order = entriesOf(answer, outside).map((entry) => entry.detailedStatus)
  expect(order).toEqual(['Z', 'B', 'C', 'A', 'X'])
})

test('3.3: the latest status is the first of the history, not the last that arrived', () => {
  const delivered = aPush({
    status: 'DeliverySucceeded',
    detailedStatus: 'DeliverySucceededMailbox',
    eventTime: '2026-03-01T09:00:00.000Z',
  })
  const source = present(aPush({ eventTime: '2026-03-01T10:00:00.000Z' }), delivered)
  expect(readBack(encodeLatest(source, ['en'])?.body ?? '')).toMatchObject({ status: { status: 'TerminalArrived' } })
})

test('3.3: a known parcel without entries has an empty history and no latest status', () => {
  const source = present(aPoll({ statuses: [] }))
  expect(readBack(encodeAll(source, ['en']).body)).toEqual({ statuses: [], trackingIds: ['1001'], distributionType: 'Mailbox' })
  expect(encodeLatest(source, ['en'])).toBeNull()
})

test('4.1: a text is chosen by exact tag, primary subtag, configured languages, and then any', () => {
  const source = present(aPush({ texts: { sv: 'Framme', fi: 'Perillä' } }))
  const served = (...languages: string[]) => encodeAll(source, languages)
  expect(served('sv-se', 'sv', 'en').contentLanguages).toEqual(['sv'])
  expect(served('de', 'fi').body).toContain('Perillä')
  expect(served('de').contentLanguages).toEqual(['fi'])
})

test('4.3: without any text a description is empty, and the consumer description is null', () => {
  const source = present(aPush({ texts: {} }))
  expect(readBack(encodeAll(source, ['en']).body)).toMatchObject({
    statuses: [{ detailedStatusDescription: '', consumerDescription: null }],
  })
})

test('6.7: an answer with a bad entry decides neither the number nor the order of entries', () => {
  const bad = { eventTimestamp: 'never' }
  const flawed = aPoll({ statuses: [{}, {}, bad] })
  expect(flawed.skipped).toBe(1)
  expect(entriesOf(flawed)).toHaveLength(1)
  const at = (detailedStatus: string) => ({ detailedStatus })
  const order = entriesOf(
    aPoll({ askedAtMs: NOON + HOUR_MS, statuses: [at('C'), at('B'), bad] }),
    aPoll({ askedAtMs: NOON, statuses: [at('B'), at('C')] }),
  )
  expect(order.map((entry) => entry.detailedStatus)).toEqual(['B', 'C'])
})
