import { join } from 'node:path'
import { expect, test } from 'vitest'
import { exportFeed } from '../../../src/insight/export/export-feed.ts'
import { COLUMNS, type FeedEvent, flatRows } from '../../../src/insight/export/flat-rows.rules.ts'
import { applyErasures } from '../../../src/insight/export/remove-rows.ts'
import { queryDuckDb } from '../../support/insight/duckdb.ts'
import { faultsIn, inFolder, manifestIn, parquetSchemaOf, rowsIn } from '../../support/insight/exported.ts'
import { feedOf } from '../../support/insight/feed-in-memory.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'

const entryEvent = (sequence: number, { id = '7', location = '', eventTimestamp = '2026-03-01T10:00:00.250Z' } = {}): FeedEvent => ({
  sequence,
  kind: 'entry',
  parcel: { id, identifiers: ['A001'], trackingIds: [], distributionType: '', extra: {}, history: [sequence] },
  entry: {
    id: sequence,
    status: 'Ingested',
    detailedStatus: '',
    eventTimestamp,
    location,
    displayToConsumer: true,
    texts: { en: { consumer: 'On its way' } },
    extra: {},
  },
})

/** Exports to one file, and returns where it is. */
async function exported(directory: string, events: readonly FeedEvent[]): Promise<string> {
  const options = { format: 'parquet', rowsMax: 1_000_000, until: null, afterRestore: false, progress: () => undefined } as const
  await inFolder(directory, (folder) => exportFeed(folder, feedOf(events), options))
  return join(directory, manifestIn(directory).files.at(-1)?.name ?? '')
}

const TYPES = { integer: 'BIGINT', string: 'VARCHAR', boolean: 'BOOLEAN', timestamp: 'TIMESTAMP WITH TIME ZONE', json: 'VARCHAR' }

test('the columns have types: whole numbers, booleans, texts, and times in UTC', async () => {
  const path = await exported(temporaryFolder(), [entryEvent(1)])
  const { types } = await parquetSchemaOf(path)
  expect(Object.entries(types)).toEqual(COLUMNS.map(({ name, type }) => [name, TYPES[type]]))
})

test('a time is exact to the millisecond, however the carrier wrote it', async () => {
  const times = ['2026-03-01T10:00Z', '2026-03-01T10:00:00.123456789Z', '0000-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z']
  const path = await exported(
    temporaryFolder(),
    times.map((eventTimestamp, at) => entryEvent(at + 1, { eventTimestamp })),
  )
  const found = await queryDuckDb(`select epoch_ms(event_timestamp) as at from read_parquet('${path}') order by sequence`)
  expect(found.map(({ at }) => Number(at))).toEqual(times.map((time) => Date.parse(time)))
})

test('groups of rows are bounded, and an erasure goes through all of them and keeps each text to the letter', async () => {
  const directory = temporaryFolder()
  const odd = ['\u{feff}begins', '\u{feff}', '', 'Ö😀', 'a\0b']
  const events = Array.from({ length: 25_001 }, (_, at) => entryEvent(at + 1, { id: String(at % 3), location: odd[at % 5] ?? '' }))
  expect((await parquetSchemaOf(await exported(directory, events))).groups).toEqual([10_000, 10_000, 5001])
  await exported(directory, [...events, { sequence: 30_000, kind: 'erased', parcel: { id: '1' } }])
  await inFolder(directory, async (folder) => await applyErasures(folder, manifestIn(directory)))
  const [first] = manifestIn(directory).files
  expect((await parquetSchemaOf(join(directory, first?.name ?? ''))).groups).toEqual([10_000, 6667])
  const kept = events.filter(({ parcel }) => parcel.id !== '1')
  expect((await rowsIn(directory)).slice(0, -1)).toEqual(kept.flatMap(flatRows))
  expect(faultsIn(directory)).toEqual([])
})

test('a group of long rows ends earlier', async () => {
  const long = 'x'.repeat(12 * 1024 * 1024)
  const path = await exported(
    temporaryFolder(),
    Array.from({ length: 4 }, (_, at) => entryEvent(at + 1, { location: long })),
  )
  expect((await parquetSchemaOf(path)).groups).toEqual([3, 1])
})
