import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type ExportOptions, exportFeed, type ReadFeed } from '../../../src/insight/export/export-feed.ts'
import { openExportFolder } from '../../../src/insight/export/export-folder.ts'
import { COLUMNS, type FeedEvent, FORMATS, type Format, flatRows } from '../../../src/insight/export/flat-rows.rules.ts'
import { type ExportedFile, nameOf } from '../../../src/insight/export/manifest.rules.ts'
import { applyErasures } from '../../../src/insight/export/remove-rows.ts'
import { queryDuckDb } from '../../support/insight/duckdb.ts'
import { faultsIn, inFolder, manifestIn, parquetSchemaOf, rowsIn } from '../../support/insight/exported.ts'
import { feedOf } from '../../support/insight/feed-in-memory.ts'
import { someEvents } from '../../support/insight/some-events.ts'
import { dyingAtStep } from '../../support/runner/dying-at-step.ts'
import { byForm } from '../../support/runner/long-form.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'

const OPTIONS: ExportOptions = { format: null, rowsMax: 3, until: null, afterRestore: false, progress: () => undefined }

const exportTo = (directory: string, read: ReadFeed, options: Partial<ExportOptions> = {}) =>
  inFolder(directory, (folder) => exportFeed(folder, read, { ...OPTIONS, ...options }))

function erasuresAppliedIn(directory: string) {
  return inFolder(directory, (folder) => {
    const manifest = folder.manifest()
    return manifest === null ? null : applyErasures(folder, manifest)
  })
}

const entryEvent = (sequence: number, id = '7'): FeedEvent => ({
  sequence,
  kind: 'update',
  parcel: { id, identifiers: ['A001'], trackingIds: [], distributionType: '', extra: {}, history: [] },
  entry: null,
})
const some = (count: number) => Array.from({ length: count }, (_, at) => entryEvent(at + 1))
const rowsOf = (events: readonly FeedEvent[]) => events.flatMap(flatRows)

/** The rows that stay, computed from whole events: an oracle of its own. */
function withoutErased(events: readonly FeedEvent[]) {
  const erased = new Set(events.flatMap(({ kind, parcel }) => (kind === 'erased' ? [parcel.id] : [])))
  for (let before = -1; before !== erased.size; ) {
    before = erased.size
    for (const { joined, parcel } of events) if (joined !== undefined && erased.has(parcel.id)) erased.add(joined.id)
  }
  return rowsOf(events.filter(({ kind, parcel }) => kind === 'erased' || !erased.has(parcel.id)))
}

test.each(FORMATS)('kills between any two steps neither lose nor repeat a row of %s', async (format) => {
  const kills = fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(
      someEvents(12),
      fc.integer({ min: 1, max: 12 }),
      kills,
      fc.integer({ min: 1, max: 5 }),
      async (events, known, steps, pageMax) => {
        const directory = join(temporaryFolder(), 'warehouse')
        const earlier = feedOf(events.slice(0, known), { pageMax })
        const whole = feedOf(events, { pageMax })
        for (const [at, step] of steps.entries()) {
          await dyingAtStep(step, () => exportTo(directory, at < 2 ? earlier : whole, { format }))
          if (at % 3 === 2) await dyingAtStep(step, () => erasuresAppliedIn(directory))
        }
        await exportTo(directory, whole, { format })
        const applied = steps.length > 2
        if (applied) await erasuresAppliedIn(directory)
        expect(faultsIn(directory)).toEqual([])
        expect(await rowsIn(directory)).toEqual(applied ? withoutErased(events) : rowsOf(events))
        expect(manifestIn(directory).cursor).toBe(events.at(-1)?.sequence ?? 0)
      },
    ),
    { numRuns: byForm(25, 1000), endOnFailure: true },
  )
})

test.each(FORMATS)('an erasure from %s that is killed at any step has changed nothing, or is finished by the next run', async (format) => {
  const events = [
    entryEvent(1, '1'),
    entryEvent(2, '2'),
    entryEvent(3, '1'),
    { sequence: 9, kind: 'erased', parcel: { id: '1' } },
    entryEvent(10),
  ]
  for (let step = 0, isDone = false; !isDone; step++) {
    const directory = temporaryFolder()
    await exportTo(directory, feedOf(events), { format, rowsMax: 2 })
    const { result } = await dyingAtStep(step, () => erasuresAppliedIn(directory))
    isDone = result !== null
    expect([rowsOf(events), withoutErased(events)]).toContainEqual(await rowsIn(directory))
    await erasuresAppliedIn(directory)
    expect(await rowsIn(directory)).toEqual(withoutErased(events))
    expect(faultsIn(directory)).toEqual([])
    expect(step).toBeLessThan(100)
  }
})

test('a file that the manifest names never changes, and each has its range, rows, format and schema', async () => {
  const directory = temporaryFolder()
  await exportTo(directory, feedOf(some(7)))
  const { files } = manifestIn(directory)
  expect(files.map(({ firstSequence, lastSequence, rows }) => [firstSequence, lastSequence, rows])).toEqual([
    [1, 3, 3],
    [4, 6, 3],
    [7, 7, 1],
  ])
  expect(files[0]).toMatchObject({ format: 'ndjson', schema: 1, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) })
  await exportTo(directory, feedOf(some(9)))
  expect(manifestIn(directory).files.slice(0, 3)).toEqual(files)
  expect(faultsIn(directory)).toEqual([])
})

test('an export with nothing new changes nothing, and says where it stands', async () => {
  const directory = temporaryFolder()
  await exportTo(directory, feedOf(some(4)))
  const before = manifestIn(directory)
  const report = await exportTo(directory, feedOf(some(4)))
  expect(report).toMatchObject({ after: 4, cursor: 4, rows: 0, files: [] })
  expect(manifestIn(directory)).toEqual(before)
})

test('`until` ends the export at a sequence, and the next one goes on there', async () => {
  const directory = temporaryFolder()
  expect(await exportTo(directory, feedOf(some(9)), { until: 5 })).toMatchObject({ cursor: 5, rows: 5 })
  expect(await exportTo(directory, feedOf(some(9)), { until: 3 })).toMatchObject({ cursor: 5, rows: 0 })
  expect(await exportTo(directory, feedOf(some(9)))).toMatchObject({ after: 5, cursor: 9, rows: 4 })
  expect(await rowsIn(directory)).toEqual(rowsOf(some(9)))
})

test('a second export into the same folder is refused, and works once the first has ended', async () => {
  const directory = temporaryFolder()
  await inFolder(directory, () => {
    expect(() => openExportFolder(directory, true)).toThrow(`another export is at work in ${directory}, pid ${process.pid}`)
  })
  expect(await exportTo(directory, feedOf(some(2)))).toMatchObject({ rows: 2 })
})

test('a folder of another relay or of another format is refused, and keeps what it has', async () => {
  const directory = temporaryFolder()
  await exportTo(directory, feedOf(some(2)), { format: 'csv' })
  await expect(exportTo(directory, feedOf(some(5)), { format: 'ndjson' })).rejects.toThrow('the folder holds csv, not ndjson')
  await expect(exportTo(directory, feedOf(some(5), { relay: 'ba9876543210' }))).rejects.toThrow(
    '0123456789ab, and the one asked is ba9876543210',
  )
  await expect(exportTo(directory, feedOf(some(1), { relay: 'ba9876543210' }))).rejects.toThrow('the one asked is ba9876543210')
  expect(await rowsIn(directory)).toEqual(rowsOf(some(2)))
  expect(faultsIn(directory)).toEqual([])
})

test('after a restore the export stops and says what to do; `afterRestore` exports again what was exported since the backup', async () => {
  const directory = temporaryFolder()
  const erased: FeedEvent = { sequence: 9, kind: 'erased', parcel: { id: '1' } }
  await exportTo(directory, feedOf([entryEvent(1, '1'), ...some(3).slice(1)]))
  await exportTo(directory, feedOf([entryEvent(1, '1'), ...some(6).slice(1), erased]))
  const restored = feedOf([...some(4), entryEvent(1_000_000_001, '3')])
  // Beyond the end of the restored feed, and in the gap that the restore has left.
  const shorter = feedOf(some(4))
  for (const read of [shorter, inGap(restored)])
    await expect(exportTo(directory, read)).rejects.toThrow(/no events after sequence 4, and this export goes on to 9 .*--after-restore/)
  expect(manifestIn(directory).cursor).toBe(9)
  const report = await exportTo(directory, inGap(restored), { afterRestore: true })
  // The row of the erased parcel goes although the row that says so is gone too.
  expect(report).toMatchObject({ after: 3, rewoundRows: 5, rows: 2, cursor: 1_000_000_001 })
  expect(await rowsIn(directory)).toEqual(rowsOf([...some(4).slice(1), entryEvent(1_000_000_001, '3')]))
  expect(faultsIn(directory)).toEqual([])
})

test('rows of events that the restored relay still has are exported again if they may show what it does not know', async () => {
  const directory = temporaryFolder()
  const joined = some(3).map((event) => ({ ...event, parcel: { ...event.parcel, identifiers: ['A001', 'B001'] } }))
  await exportTo(directory, feedOf([...joined, ...some(6).slice(3)]), { until: 3 })
  expect(manifestIn(directory)).toMatchObject({ cursor: 3, files: [{ lastSequence: 3, knownTo: 6 }] })
  await expect(exportTo(directory, feedOf(some(4)))).rejects.toThrow(/no events after sequence 4, and this export goes on to 6 /)
  expect(await exportTo(directory, feedOf(some(4)), { afterRestore: true })).toMatchObject({ after: 0, rewoundRows: 3, rows: 4 })
  expect(await rowsIn(directory)).toEqual(rowsOf(some(4)))
})

/** A relay that was restored refuses the sequences that it has skipped (docs/feed.md). */
const inGap =
  (read: ReadFeed): ReadFeed =>
  async (after, limit) =>
    after > 4 && after < 1_000_000_000 ? { ok: false, status: 410, body: { lastSequence: 4 } } : await read(after, limit)

test('an export whose next events the relay has deleted stops; a new one begins with the oldest', async () => {
  const directory = temporaryFolder()
  await exportTo(directory, feedOf(some(3)))
  const pruned = feedOf(some(9), { oldest: 6 })
  await expect(exportTo(directory, pruned)).rejects.toThrow(/from sequence 4 to 5 .*into a new folder/)
  expect(manifestIn(directory).cursor).toBe(3)
  const other = temporaryFolder()
  expect(await exportTo(other, pruned)).toMatchObject({ after: 5, rows: 4 })
  expect(manifestIn(other).startsAfter).toBe(5)
})

test('an export that the relay refuses midway keeps its complete files, and goes on behind them', async () => {
  const directory = temporaryFolder()
  const read = feedOf(some(9), { pageMax: 4 })
  const breaking: ReadFeed = async (after, limit) =>
    after === 4 ? { ok: false, status: 503, body: { detail: 'The store cannot be read now.' } } : await read(after, limit)
  await expect(exportTo(directory, breaking)).rejects.toThrow('The store cannot be read now.')
  expect(faultsIn(directory)).toEqual([])
  expect(await rowsIn(directory)).toEqual(rowsOf(some(3)))
  await exportTo(directory, read)
  expect(await rowsIn(directory)).toEqual(rowsOf(some(9)))
})

test('a folder with lost, changed or unreadable files is refused with the name of what is wrong', async () => {
  const folderWith = async (break_: (directory: string, first: string) => void) => {
    const directory = temporaryFolder()
    await exportTo(directory, feedOf([...some(4), { sequence: 5, kind: 'erased', parcel: { id: '7' } }]))
    break_(directory, join(directory, manifestIn(directory).files[0]?.name ?? ''))
    return { directory, before: readdirSync(directory) }
  }
  const cases: readonly (readonly [(directory: string, first: string) => void, RegExp])[] = [
    [(_, first) => rmSync(first), /events-.*ndjson is missing: bring back a copy/],
    [(_, first) => appendFileSync(first, '{}\n'), /bytes instead of/],
    [(directory) => rmSync(join(directory, 'manifest.json')), /has exported files, but no manifest\.json/],
    [(directory) => writeFileSync(join(directory, 'manifest.json'), '{"schema":1'), /manifest\.json is no manifest/],
    [(directory) => writeFileSync(join(directory, 'manifest.json'), '{"schema":2}'), /is of schema 2, and this program writes schema 1/],
  ]
  for (const [break_, message] of cases) {
    const { directory, before } = await folderWith(break_)
    await expect(exportTo(directory, feedOf(some(9)))).rejects.toThrow(message)
    await expect(erasuresAppliedIn(directory)).rejects.toThrow(message)
    expect(readdirSync(directory)).toEqual(before)
  }
})

test.each(FORMATS)('an erasure stops at a file of %s that is not as it was written, and removes nothing', async (format) => {
  const directory = temporaryFolder()
  await exportTo(directory, feedOf([...some(4), { sequence: 5, kind: 'erased', parcel: { id: '7' } }]), { format })
  const { files } = manifestIn(directory)
  for (const { name } of [...files.slice(-1), ...files.slice(0, 1)]) {
    const content = readFileSync(join(directory, name))
    content.writeUInt8(content.readUInt8(content.length >> 1) ^ 1, content.length >> 1)
    writeFileSync(join(directory, name), content)
    await expect(erasuresAppliedIn(directory)).rejects.toThrow(/is not as it was written/)
  }
  expect(manifestIn(directory).files).toEqual(files)
})

test.each(FORMATS)(
  'a folder of %s that an older version has begun, with fewer columns, goes on, and erasures keep the columns of its files',
  async (format) => {
    const directory = temporaryFolder()
    await exportTo(directory, feedOf([...some(4), entryEvent(5, '8')]), { format })
    await takeColumns(directory, format)
    const older = await columnsIn(directory)
    const watchdog = { rule: 'no-scan', since: '2026-03-03T12:00:00.000Z', checked: true }
    const events: readonly FeedEvent[] = [
      ...some(4),
      entryEvent(5, '8'),
      { ...entryEvent(6, '8'), kind: 'stalled', watchdog },
      { sequence: 7, kind: 'erased', parcel: { id: '7' } },
    ]
    expect(await exportTo(directory, feedOf(events))).toMatchObject({ after: 5, rows: 2 })
    expect(await rowsIn(directory)).toEqual(rowsOf(events))
    expect(manifestIn(directory)).toMatchObject({ schema: 1, columns: COLUMNS })
    expect(await erasuresAppliedIn(directory)).toMatchObject({ removedRows: 4, changedFiles: 2 })
    expect(await rowsIn(directory)).toEqual(rowsOf(events.slice(4)))
    expect(faultsIn(directory)).toEqual([])
    expect(await columnsIn(directory)).toEqual([older[1], COLUMNS.map(({ name }) => name).join(',')])
  },
)

/** The names of the columns of each file. */
async function columnsIn(directory: string) {
  return await Promise.all(
    manifestIn(directory).files.map(async ({ name, format }) => {
      const path = join(directory, name)
      if (format === 'parquet') return Object.keys((await parquetSchemaOf(path)).types).join(',')
      const [line = ''] = readFileSync(path, 'utf8').split('\n')
      return format === 'csv' ? line : Object.keys(JSON.parse(line)).join(',')
    }),
  )
}

const TAKEN = ['watchdog_rule', 'watchdog_since', 'watchdog_checked']
const TEXT_TAKEN = { csv: new RegExp(`,(?:${TAKEN.join(',')}|,,)$`, 'gm'), ndjson: /(?:,"watchdog_\w+":null){3}/g }

/** Makes a folder, in which no row is of watchdogs, as a version wrote it that had no columns of them. */
async function takeColumns(directory: string, format: Format): Promise<void> {
  const manifest = manifestIn(directory)
  const files: ExportedFile[] = []
  for (const file of manifest.files) {
    const path = join(directory, file.name)
    if (format === 'parquet') {
      const rest = `select * exclude (${TAKEN.join(', ')}) from read_parquet('${path}')`
      await queryDuckDb('select 1', `copy (${rest}) to '${path}.less' (format parquet)`)
      renameSync(`${path}.less`, path)
    } else writeFileSync(path, readFileSync(path, 'utf8').replace(TEXT_TAKEN[format], ''))
    const content = readFileSync(path)
    const taken = { ...file, bytes: content.byteLength, sha256: createHash('sha256').update(content).digest('hex') }
    renameSync(path, join(directory, nameOf(taken)))
    files.push({ ...taken, name: nameOf(taken) })
  }
  const columns = COLUMNS.filter(({ name }) => !TAKEN.includes(name))
  writeFileSync(join(directory, 'manifest.json'), JSON.stringify({ ...manifest, columns, files }))
}

test('files of others in the folder stay', async () => {
  const directory = temporaryFolder()
  writeFileSync(join(directory, 'notes.txt'), 'ours')
  mkdirSync(join(directory, 'queries'))
  await exportTo(directory, feedOf(some(2)))
  await erasuresAppliedIn(directory)
  expect(['notes.txt', 'queries'].every((name) => existsSync(join(directory, name)))).toBe(true)
})
