import fc from 'fast-check'
import type { FeedEvent } from '../../../src/insight/export/flat-rows.rules.ts'

/** Texts that break careless writers of CSV and JSON. */
const text = fc.oneof(
  fc.constantFrom(
    '',
    '"',
    '""',
    ',',
    '\n',
    '\r\n',
    'a\nb',
    'a"b,c\r',
    "'",
    ' ',
    'null',
    'NULL',
    '\\N',
    '\\',
    '\\"',
    '\t',
    '=1+1',
    'Ö',
    '😀',
    '\u2028',
    '\ufeff',
    '0012',
    '1e5',
    'true',
  ),
  fc.string({ unit: 'binary', maxLength: 12 }).map((any) => any.replaceAll('\0', '')),
)

/**
 * Names of members without an escape in JSON: V8 13.6 reads a name with one as the name that a former object had at the same place,
 * if that one is how the escape begins (`{"":1,"\t":2}` after `{"":1,"\\":2}`).
 */
const memberName = text.filter((name) => JSON.stringify(name) === `"${name}"`)

const time = fc.date({ min: new Date('2020-01-01'), max: new Date('2030-01-01'), noInvalidDate: true }).map((date) => date.toISOString())

const entry = fc.record({
  id: fc.integer({ min: 1, max: 1e12 }),
  status: text,
  detailedStatus: text,
  eventTimestamp: time,
  location: text,
  displayToConsumer: fc.boolean(),
  texts: fc.dictionary(
    fc.constantFrom('en', 'sv', 'pt-BR'),
    fc.record({ consumer: fc.option(text), detailed: text }, { requiredKeys: [] }),
  ),
  extra: fc.dictionary(memberName, fc.oneof(text, fc.integer(), fc.constant(null), fc.array(text)), { maxKeys: 2 }),
})

const ids = fc.array(fc.stringMatching(/^[A-Z0-9]{4,12}$/), { minLength: 1, maxLength: 3 })
const parcelId = fc.integer({ min: 1, max: 6 }).map(String)

const parcel = fc.record(
  {
    id: parcelId,
    identifiers: ids,
    trackingIds: ids,
    distributionType: text,
    extra: fc.dictionary(memberName, text, { maxKeys: 1 }),
    history: fc.array(fc.integer({ min: 1, max: 1e12 }), { maxLength: 3 }),
    reference: text,
    labels: fc.dictionary(fc.stringMatching(/^[a-z0-9-]{1,32}$/), text, { maxKeys: 3 }),
  },
  { requiredKeys: ['id', 'identifiers', 'trackingIds', 'distributionType', 'extra', 'history'] },
)

const watchdog = fc.record({ rule: text, since: time, checked: fc.boolean() })

const event = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('entry', 'update', 'split'), parcel, entry: fc.option(entry) }) },
  fc.record({ kind: fc.constant('united'), parcel, entry: fc.option(entry), united: fc.array(fc.integer({ min: 1, max: 99 })) }),
  fc.record({
    kind: fc.constant('join'),
    parcel,
    entry: fc.constant(null),
    joined: fc.record({ id: parcelId, identifiers: ids }),
    entries: fc.array(entry, { maxLength: 3 }),
  }),
  fc.record(
    { kind: fc.constantFrom('stalled', 'recovered'), parcel, entry: fc.constant(null), watchdog },
    { requiredKeys: ['kind', 'parcel', 'entry'] },
  ),
  fc.record({ kind: fc.constantFrom('erased', 'retired'), parcel: fc.record({ id: parcelId }) }),
)

/** Events of all kinds, with gaps between their sequences. As in a relay, nothing is about a parcel that was joined, erased or retired before. */
export const someEvents = (most: number): fc.Arbitrary<readonly FeedEvent[]> =>
  fc.array(fc.tuple(fc.integer({ min: 1, max: 3 }), event), { minLength: 1, maxLength: most }).map((drawn) => {
    const ended = new Set<string>()
    let sequence = 0
    return drawn.flatMap(([step, one]): FeedEvent[] => {
      sequence += step
      const joined = 'joined' in one ? one.joined.id : null
      if (ended.has(one.parcel.id) || joined === one.parcel.id || (joined !== null && ended.has(joined))) return []
      if (joined !== null) ended.add(joined)
      if (one.kind === 'erased' || one.kind === 'retired') ended.add(one.parcel.id)
      return [{ sequence, ...one }]
    })
  })
