import { describe, expect, test } from 'vitest'
import { AppError } from '../../../src/core/domain/errors.ts'
import { readReference } from '../../../src/core/domain/history/order-context.ts'
import { parseKeepingNumbers } from '../../../src/core/domain/json-body.ts'
import { createFeedTail } from '../../../src/core/flow/delivery/feed-tail.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import { exportFeed, type ReadFeed } from '../../../src/insight/export/export-feed.ts'
import { openExportFolder } from '../../../src/insight/export/export-folder.ts'
import { COLUMNS, type FeedEvent, FORMATS, flatRows, parsePage } from '../../../src/insight/export/flat-rows.rules.ts'
import { applyErasures } from '../../../src/insight/export/remove-rows.ts'
import { KEPT_FOREVER } from '../../../src/upkeep/retention/retention.rules.ts'
import { faultsIn, manifestIn, rowsIn } from '../../support/insight/exported.ts'
import { NAUGHTY_STRINGS } from '../../support/portal/naughty-strings.ts'
import { DAY_MS } from '../../support/runner/constants.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { engines } from '../../support/store/engines.ts'
import { openErasures } from '../../support/store/erasures.ts'

type Store = Awaited<ReturnType<typeof openErasures>>

/** Reads pages as the route does, and their JSON as the command does. */
function feedIn({ reads }: Pick<Store, 'reads'>): ReadFeed {
  const tail = createFeedTail({ reads, yieldToOthers: async () => undefined })
  return async (after, limit) => {
    try {
      const { events, next } = await tail.read({ after, limit, charsMax: 2000, inStep: false })
      const text = `{"events":[${events.map(({ json }) => json).join(',')}],"next":${next},"relay":"0123456789ab"}`
      return { ok: true, status: 200, body: Object(parsePage(text)) }
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      return { ok: false, status: 410, body: { ...error.facts } }
    }
  }
}

async function eventsIn(read: ReadFeed): Promise<readonly FeedEvent[]> {
  const events: FeedEvent[] = []
  for (let after = 0; ; ) {
    const page = await read(after, 500)
    if (!page.ok) throw new Error(JSON.stringify(page.body))
    if (page.body.events.length === 0) return events
    events.push(...page.body.events)
    after = page.body.next
  }
}

const NAUGHTY = NAUGHTY_STRINGS.filter((text) => readReference(text) === text)
const LABELS = Object.fromEntries(Array.from({ length: 16 }, (_, nth) => [`l-${nth}`, NAUGHTY[nth * 20] ?? '']))

/** Fills a store with joins, a retirement, odd texts and numbers, and a parcel GONE0001. */
async function fill(engine: Engine): Promise<Store> {
  const store = await openErasures(engine)
  const { writes, push, poll, pass, now } = store
  const at = (seconds: number) => new Date(now() + seconds * 1000).toISOString()
  await writes.adjustRetention({ ...KEPT_FOREVER, historyMs: 10 * DAY_MS })
  await push({ trackingIds: ['OLD00001'], eventTime: at(0) })
  await writes.unwatch({ identifier: 'OLD00001' })
  for (let day = 0; day < 12; day++) {
    pass(DAY_MS)
    while (!(await writes.prune({ nowMs: now() })).isDone);
  }
  await push({ trackingIds: ['NEW00001'], eventTime: at(1), location: '"quoted", \nand\rbroken; \u{feff}' })
  await push({ trackingIds: ['NEW00002'], eventTime: at(2), texts: { en: '', sv: 'Framme, "här"\n' }, displayToConsumer: false })
  await push({ trackingIds: ['NEW00001', 'NEW00002'], eventTime: at(3), status: 'Delivered' })
  const extra = { weight: parseKeepingNumbers('1.50'), big: parseKeepingNumbers('12345678901234567890') }
  const statuses = [{ status: 'Created', eventTimestamp: at(4), ...extra }]
  await poll({ asked: 'NEW00003', trackingIds: ['NEW00003'], statuses, extra })
  await writes.saveOrder({ identifier: 'NEW00002', context: { reference: NAUGHTY[0] ?? '', labels: LABELS, note: 'QQNOTE' }, nowMs: now() })
  await push({ trackingIds: ['GONE0001'], eventTime: at(5) })
  return store
}

const OPTIONS = { rowsMax: 4, until: null, afterRestore: false, progress: () => undefined }
const places = engines.flatMap((engine) => FORMATS.map((format) => ({ engine, format, name: `${format} of ${engine.name}` })))
const columnOf = (wanted: string) => COLUMNS.findIndex(({ name }) => name === wanted)
const namesGone = (row: readonly unknown[]) => JSON.stringify(row).includes('GONE0001')

describe.each(places)('an export in $name', ({ engine, format }) => {
  test('DuckDB reads back what the feed has: joins, retirements, erasures, each text to the letter', async () => {
    const store = await fill(engine)
    const directory = temporaryFolder()
    const folder = openExportFolder(directory, true)
    try {
      await exportFeed(folder, feedIn(store), { ...OPTIONS, format })
      const events = await eventsIn(feedIn(store))
      expect(events.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['entry', 'join', 'retired']))
      const rows = events.flatMap(flatRows)
      expect(await rowsIn(directory)).toEqual(rows)
      expect(rows.filter((row) => JSON.stringify(row).includes('\\"weight\\":1.50,\\"big\\":12345678901234567890'))).toHaveLength(1)
      expect(rows.filter(namesGone)).toHaveLength(1)
      const read = rows.filter((row) => row[columnOf('reference')] === NAUGHTY[0])
      expect(read.map((row) => JSON.parse(String(row[columnOf('labels')])))).toEqual(expect.arrayContaining([LABELS]))
      expect(JSON.stringify(rows)).not.toContain('QQNOTE')

      await store.forget('GONE0001')
      await exportFeed(folder, feedIn(store), { ...OPTIONS, format })
      const manifest = folder.manifest() ?? manifestIn(directory)
      expect(await applyErasures(folder, manifest)).toEqual({ erasedParcels: 1, removedRows: 1, changedFiles: 1 })
      const [erased] = (await eventsIn(feedIn(store))).slice(-1)
      expect(erased?.kind).toBe('erased')
      expect(await rowsIn(directory)).toEqual([...rows.filter((row) => !namesGone(row)), ...(erased === undefined ? [] : flatRows(erased))])
    } finally {
      folder.close()
    }
    expect(faultsIn(directory)).toEqual([])
  })
})
