import fc from 'fast-check'
import type { PollObservation, PushObservation } from '../../../src/core/domain/history/observation.ts'
import { parseAllAnswer } from '../../../src/core/domain/history/pull-response.ts'
import { HOUR_MS } from '../runner/constants.ts'
import { aPoll, aPush, type PolledEntry, type PollFields, type PushFields, pushBody } from './builders.ts'

export type Observation = PushObservation | PollObservation

/** An observation with the bytes that it was parsed from. */
export interface Seen {
  readonly observation: Observation
  readonly body: Uint8Array
}

function seenPush(fields: PushFields): Seen {
  return { observation: aPush(fields), body: pushBody(fields) }
}

function seenPoll(fields: PollFields): Seen {
  const observation = aPoll(fields)
  return { observation, body: observation.body }
}

/** Few values, so that sightings often share a second. */
const second = fc.constantFrom('2026-03-01T10:00:00', '2026-03-01T10:00:00', '2026-03-01T10:00:01')
const fraction = fc.constantFrom('', '.000', '.250', '.750')
const shorterOrLonger = fc.constantFrom('.25', '.2500001', '.75', '.0', '.000999999')
const timeWith = (fractions: fc.Arbitrary<string>) => fc.tuple(second, fractions).map((parts) => `${parts.join('')}Z`)
const time = fc.oneof(timeWith(fraction), timeWith(shorterOrLonger), fc.constant('2026-03-01T10:00Z'))
const location = fc.constantFrom('', '', 'Lund', 'Umeå')
const statuses = fc.constantFrom(['TerminalArrived', 'ArrivedT2'], ['TerminalArrived', 'ArrivedT2'], ['DeliveryStarted', 'DeliveryStarted'])
const text = fc.constantFrom('', 'Arrived', 'Framme')
const languages = fc.constantFrom('en', 'sv')
const pushedTags = fc.constantFrom('en', 'sv', 'sv', 'sv_SE', 'sv-SE')
const ids = fc.uniqueArray(fc.constantFrom('1001', '1002', '2001', '2002'), { minLength: 1, maxLength: 2 })

const pushed: fc.Arbitrary<Seen> = fc
  .record({
    time,
    location: fc.option(location),
    statuses,
    text,
    tag: pushedTags,
    ids,
    shown: fc.boolean(),
    type: fc.constantFrom('', 'Mailbox', 'Home'),
  })
  .map((one) =>
    seenPush({
      status: one.statuses[0] ?? '',
      detailedStatus: one.statuses[1] ?? '',
      eventTime: one.time,
      location: one.location,
      texts: { [one.tag]: one.text },
      trackingIds: one.ids,
      displayToConsumer: one.shown,
      distributionType: one.type,
    }),
  )

/** Members that the specification does not define: some never change, some change at every poll. */
const unknownMembers = fc.constantFrom<Readonly<Record<string, unknown>>>({}, {}, { weight: 12 }, { ageSeconds: 1 }, { ageSeconds: 2 })

const polledEntry: fc.Arbitrary<PolledEntry> = fc
  .record({ time, location, statuses, text, consumer: fc.option(text), shown: fc.boolean(), unknown: unknownMembers })
  .map((one) => ({
    status: one.statuses[0] ?? '',
    detailedStatus: one.statuses[1] ?? '',
    eventTimestamp: one.time,
    location: one.location,
    detailedStatusDescription: one.text,
    consumerDescription: one.consumer,
    displayToConsumer: one.shown,
    ...one.unknown,
  }))

const polled: fc.Arbitrary<Seen> = fc
  .record({
    entries: fc.array(polledEntry, { maxLength: 4 }),
    repeats: fc.integer({ min: 1, max: 3 }),
    bad: fc.integer({ min: 0, max: 9 }),
    language: languages,
    asked: fc.constantFrom('AB123456789SE', 'CD123456789SE', '1001'),
    askedAtMs: fc.constantFrom(1, 2, 3).map((hour) => Date.UTC(2026, 2, 1, 10 + hour)),
    ids,
    type: fc.constantFrom('', 'Mailbox', 'Home', null),
    extra: unknownMembers,
  })
  .map(({ entries, repeats, bad, language, asked, askedAtMs, ids, type, extra }) => {
    const [first, ...rest] = entries
    const statuses = first === undefined ? [] : [...Array.from({ length: repeats }, () => first), ...rest]
    return seenPoll({
      statuses: bad === 0 ? [{ eventTimestamp: 'never' }, ...statuses] : statuses,
      language,
      asked,
      askedAtMs,
      trackingIds: ids,
      extra: { distributionType: type, ...extra },
    })
  })

/** Returns an answer as a later poll might get it: only unknown members differ. */
function aged({ observation, body }: Seen, ageSeconds: number, laterMs: number): readonly Seen[] {
  if (observation.kind === 'push') return []
  const { statuses, ...rest } = JSON.parse(String(body)) as { readonly statuses: readonly object[] }
  const answer = Buffer.from(
    JSON.stringify({ statuses: statuses.map((entry, at) => ({ ...entry, ageSeconds: ageSeconds + at })), ...rest }),
  )
  const { asked, language, askedAtMs } = observation
  const reading = parseAllAnswer(answer, { asked, language, contentLanguage: null, askedAtMs: askedAtMs + laterMs })
  if (!reading.ok) throw new Error(`not an answer: ${reading.reason}`)
  return [{ observation: reading.observation, body: answer }]
}

const seenOnceOrTwice = fc
  .tuple(fc.oneof(pushed, polled), fc.option(fc.tuple(fc.nat(3), fc.constantFrom(0, 3_600_000))))
  .map(([seen, again]) => [seen, ...(again === null ? [] : aged(seen, ...again))])

/** Generates observations of one to three parcels, some of which turn out to be the same parcel. */
export const observations: fc.Arbitrary<readonly Seen[]> = fc
  .array(seenOnceOrTwice, { minLength: 1, maxLength: 7 })
  .map((all) => all.flat())

/** Generates the same observations in another order, some of them repeated. */
export function rearranged(of: readonly Seen[]): fc.Arbitrary<readonly Seen[]> {
  return fc
    .tuple(fc.shuffledSubarray([...of], { minLength: of.length }), fc.subarray([...of]))
    .chain(([all, again]) => fc.shuffledSubarray([...all, ...again], { minLength: all.length + again.length }))
}

export function everyOrder(all: readonly Seen[]): readonly (readonly Seen[])[] {
  if (all.length < 2) return [all]
  return all.flatMap((first) => everyOrder(all.filter((one) => one !== first)).map((rest) => [first, ...rest]))
}

const answerOfHour = (hour: number, statuses: readonly PolledEntry[]) =>
  seenPoll({ language: 'sv', askedAtMs: Date.UTC(2026, 2, 1, 12) + hour * HOUR_MS, statuses })
const unplaced = (text: string, unknown: Readonly<Record<string, unknown>> = {}): PolledEntry => ({
  eventTimestamp: '2026-03-01T10:00:00Z',
  location: '',
  detailedStatusDescription: text,
  consumerDescription: text,
  ...unknown,
})
const copyOfHour = (hour: number) =>
  answerOfHour(
    hour,
    ['Framme', 'Ankommen'].map((text) => unplaced(text, { ageSeconds: hour })),
  )

/**
 * Two copies of an answer, which differ only in unknown members. Between them another answer was asked, which shares a sighting with both.
 * There is also a push. A merge that depended on the order of arrival would serve different histories.
 */
export const copiesAroundAnother: readonly Seen[] = [
  copyOfHour(0),
  answerOfHour(1, [{ eventTimestamp: '2026-03-01T10:00:00.250Z', location: 'Lund' }, unplaced('Ankommen')]),
  copyOfHour(2),
  seenPush({ eventTime: '2026-03-01T10:00:00.250Z', location: 'Lund', texts: { en: 'Arrived' } }),
]
