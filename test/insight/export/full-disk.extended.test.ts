import { join } from 'node:path'
import { expect, test } from 'vitest'
import { describeFailure } from '../../../src/core/domain/system-reason.ts'
import { exportFeed } from '../../../src/insight/export/export-feed.ts'
import { type FeedEvent, FORMATS, flatRows } from '../../../src/insight/export/flat-rows.rules.ts'
import { applyErasures } from '../../../src/insight/export/remove-rows.ts'
import { faultsIn, inFolder, manifestIn, rowsIn } from '../../support/insight/exported.ts'
import { feedOf } from '../../support/insight/feed-in-memory.ts'
import { onFullDisk } from '../../support/runner/dying-at-step.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'

const STEPS_MAX = 100

const event = (sequence: number): FeedEvent => ({
  sequence,
  kind: 'update',
  parcel: { id: String(sequence % 3), identifiers: ['A001'], trackingIds: [], distributionType: '', extra: {}, history: [] },
  entry: null,
})
const EVENTS = Array.from({ length: 7 }, (_, at) => event(at + 1))
const ERASED: FeedEvent = { sequence: 8, kind: 'erased', parcel: { id: '1' } }
const rowsUpTo = (sequence: number) => EVENTS.filter((one) => one.sequence <= sequence).flatMap(flatRows)

const exportTo = (directory: string, events: readonly FeedEvent[], format: (typeof FORMATS)[number] | null = null) =>
  inFolder(directory, (folder) =>
    exportFeed(folder, feedOf(events), { format, rowsMax: 2, until: null, afterRestore: false, progress: () => undefined }),
  )

const erase = (directory: string) =>
  inFolder(directory, (folder) => {
    const manifest = folder.manifest()
    return manifest === null ? null : applyErasures(folder, manifest)
  })

/** Returns what a person is told; null: the disk had room for all. */
async function toldOnFullDisk(step: number, work: () => Promise<unknown>): Promise<string | null> {
  try {
    await onFullDisk(step, work)
    return null
  } catch (error) {
    return describeFailure(error)
  }
}

test.each(FORMATS)(
  'a disk that is full at any step: an export of %s says so and keeps complete files; the next one goes on',
  async (format) => {
    for (let step = 0, told: string | null = ''; told !== null; step++) {
      const directory = join(temporaryFolder(), 'warehouse')
      await exportTo(directory, EVENTS.slice(0, 3), format)
      const before = manifestIn(directory)
      told = await toldOnFullDisk(step, () => exportTo(directory, EVENTS))
      if (told !== null) expect(told).toMatch(/(?:^|\/)warehouse\b.*: the disk is full$/)
      const { files, cursor } = manifestIn(directory)
      expect(files.slice(0, before.files.length)).toEqual(before.files)
      expect(faultsIn(directory)).toEqual([])
      expect(await rowsIn(directory)).toEqual(rowsUpTo(cursor))
      await exportTo(directory, EVENTS)
      expect(faultsIn(directory)).toEqual([])
      expect(await rowsIn(directory)).toEqual(rowsUpTo(7))
      expect(step).toBeLessThan(STEPS_MAX)
    }
  },
)

test.each(FORMATS)('a disk that is full at any step: an erasure from %s changes all or nothing, and can be repeated', async (format) => {
  const whole = [...EVENTS, ERASED].flatMap(flatRows)
  const kept = [...EVENTS.filter(({ parcel }) => parcel.id !== '1'), ERASED].flatMap(flatRows)
  for (let step = 0, told: string | null = ''; told !== null; step++) {
    const directory = join(temporaryFolder(), 'warehouse')
    await exportTo(directory, [...EVENTS, ERASED], format)
    told = await toldOnFullDisk(step, () => erase(directory))
    if (told !== null) expect(told).toMatch(/(?:^|\/)warehouse\b.*: the disk is full$/)
    expect([whole, kept]).toContainEqual(await rowsIn(directory))
    await erase(directory)
    expect(await rowsIn(directory)).toEqual(kept)
    expect(faultsIn(directory)).toEqual([])
    expect(step).toBeLessThan(STEPS_MAX)
  }
})
