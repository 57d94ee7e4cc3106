import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  COLUMNS,
  createErasedParcels,
  ENCODINGS,
  flatRows,
  headOf,
  parsePage,
  TEXT_FORMATS,
} from '../../../src/insight/export/flat-rows.rules.ts'
import { someEvents } from '../../support/insight/some-events.ts'

const entry = {
  id: 42,
  status: 'Delivered',
  detailedStatus: 'D',
  eventTimestamp: '2026-03-01T10:00:00.250Z',
  location: '',
  displayToConsumer: true,
  texts: { en: { consumer: null } },
  extra: {},
}
const parcel = { id: '7', identifiers: ['A001'], trackingIds: [], distributionType: 'Mailbox', extra: { a: 1 }, history: [42, 17] }

const named = (row: readonly unknown[] | undefined) => Object.fromEntries(COLUMNS.map(({ name }, at) => [name, row?.[at]]))

test('an event is a flat row: ids are texts, lists and objects are JSON, what is missing is null', () => {
  const [row, ...more] = flatRows({ sequence: 42, kind: 'entry', parcel, entry })
  expect(more).toEqual([])
  expect(row).toHaveLength(COLUMNS.length)
  expect(named(row)).toEqual({
    sequence: 42,
    part: 0,
    kind: 'entry',
    parcel_id: '7',
    joined_parcel_id: null,
    identifiers: '["A001"]',
    tracking_ids: '[]',
    distribution_type: 'Mailbox',
    history: '["42","17"]',
    entry_id: '42',
    status: 'Delivered',
    detailed_status: 'D',
    event_timestamp: '2026-03-01T10:00:00.250Z',
    location: '',
    display_to_consumer: true,
    texts: '{"en":{"consumer":null}}',
    united: null,
    joined_identifiers: null,
    parcel_extra: '{"a":1}',
    entry_extra: '{}',
    reference: null,
    labels: null,
    watchdog_rule: null,
    watchdog_since: null,
    watchdog_checked: null,
  })
})

test.each(['stalled', 'recovered'])(
  'a row `%s` says which rule, since when, and whether the carrier was asked, if that is known',
  (kind) => {
    const told = { sequence: 43, kind, parcel, entry: null }
    const since = '2026-03-03T12:00:00.000Z'
    const rows = [{ ...told, watchdog: { rule: 'no-scan', since, checked: false } }, told].flatMap(flatRows)
    expect(rows.map(named)).toMatchObject([
      { kind, parcel_id: '7', entry_id: null, watchdog_rule: 'no-scan', watchdog_since: since, watchdog_checked: false },
      { kind, watchdog_rule: null, watchdog_since: null, watchdog_checked: null },
    ])
    expect(rows.map((row) => row.length)).toEqual([COLUMNS.length, COLUMNS.length])
  },
)

test('the order of a parcel stands in the row of its event, not in those of the entries of a join', () => {
  const ordered = { ...parcel, reference: 'ORDER-1', labels: { shop: 'north' } }
  const joined = { id: '9', identifiers: ['B001'] }
  const rows = flatRows({ sequence: 46, kind: 'join', parcel: ordered, entry: null, joined, entries: [entry] }).map(named)
  expect(rows.map(({ reference, labels }) => [reference, labels])).toEqual([
    ['ORDER-1', '{"shop":"north"}'],
    [null, null],
  ])
})

test('a join is a row of its own, with a row for each entry that the parcel has then', () => {
  const joined = { id: '9', identifiers: ['B001'] }
  const rows = flatRows({ sequence: 46, kind: 'join', parcel, entry: null, joined, entries: [entry, { ...entry, id: 17 }] }).map(named)
  expect(rows.map(({ part, kind, entry_id: id }) => [part, kind, id])).toEqual([
    [0, 'join', null],
    [1, 'join_entry', '42'],
    [2, 'join_entry', '17'],
  ])
  expect(rows[0]).toMatchObject({ joined_parcel_id: '9', joined_identifiers: '["B001"]', identifiers: '["A001"]' })
  expect(rows[1]).toMatchObject({ sequence: 46, parcel_id: '7', joined_parcel_id: null, identifiers: null, status: 'Delivered' })
})

test.each(['erased', 'retired'])('an event `%s` is a row with nothing but the id of the parcel', (kind) => {
  const [row = []] = flatRows({ sequence: 50, kind, parcel: { id: '7' } })
  expect(row.slice(0, 4)).toEqual([50, 0, kind, '7'])
  expect(row.slice(4).every((value) => value === null)).toBe(true)
  expect(row).toHaveLength(COLUMNS.length)
})

test.each(TEXT_FORMATS)('the head of each row in %s is found in its text, and its end at a line, whatever it holds', (format) => {
  const { encode, goesOn } = ENCODINGS[format]
  fc.assert(
    fc.property(someEvents(4), (events) => {
      for (const row of events.flatMap(flatRows)) {
        const text = encode(row)
        expect(text.endsWith('\n')).toBe(true)
        const lines = text.slice(0, -1).split('\n')
        const isOpen = lines.map((_, at) => goesOn(lines.slice(0, at + 1).join('\n')))
        expect(isOpen).toEqual(lines.map((_, at) => at < lines.length - 1))
        const [sequence, , kind, parcelId, joinedParcelId] = row
        expect(headOf(text, format)).toEqual({ sequence, kind, parcelId, joinedParcelId })
      }
    }),
  )
})

test('a row that no export has written has no head', () => {
  const wrong = ['', '{}', 'a,b', '1,0,entry', '{"sequence":1,"part":0,"kind":"entry","parcel_id":7,']
  for (const format of TEXT_FORMATS) expect(wrong.map((text) => headOf(text, format))).toEqual(wrong.map(() => null))
})

test('what goes with an erased parcel is what was joined to it, directly or before', () => {
  const parcels = createErasedParcels()
  const row = (kind: string, parcelId: string, joinedParcelId: string | null = null) => ({ sequence: 1, kind, parcelId, joinedParcelId })
  const rows = [row('entry', '1'), row('join', '2', '1'), row('join', '3', '2'), row('entry', '4'), row('erased', '3'), row('retired', '4')]
  for (const one of rows) parcels.add(one)
  expect(parcels.count()).toBe(1)
  expect(rows.map((one) => parcels.removes(one))).toEqual([true, true, true, false, false, false])
})

test('numbers in members of the carrier stay as it wrote them, and others are numbers', () => {
  const parcelText =
    '{"id":"7","identifiers":["A001"],"trackingIds":[],"distributionType":"","extra":{"n":1.50,"big":12345678901234567890},"history":[1]}'
  const entryText = JSON.stringify({ ...entry, id: 1 }).replace('"extra":{}', '"extra":{"e":1e400,"deep":{"extra":[-0]}}')
  const page = Object(parsePage(`{"events":[{"sequence":1,"kind":"entry","parcel":${parcelText},"entry":${entryText}}],"next":1}`))
  expect(page.next).toBe(1)
  expect(page.events[0].sequence).toBe(1)
  expect(named(flatRows(page.events[0])[0])).toMatchObject({
    history: '["1"]',
    parcel_extra: '{"n":1.50,"big":12345678901234567890}',
    entry_extra: '{"e":1e400,"deep":{"extra":[-0]}}',
  })
})
