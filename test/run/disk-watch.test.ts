import { expect, test } from 'vitest'
import { readPush } from '../../src/flow/read-push.ts'
import { createDiskWatch, createShortage, type DiskState, isShortIn, refuseWhenShort } from '../../src/run/disk-watch.ts'
import type { GroupCommit } from '../../src/run/group-commit.ts'
import { createLogBook } from '../support/relay.ts'

const MB = 1024 * 1024
const limits = { freeBytesMin: 256 * MB, logBytesWarn: 256 * MB }

function watch() {
  const { log, lines } = createLogBook()
  let measured: () => Promise<DiskState> = async () => ({ freeBytes: 512 * MB, logBytes: 0 })
  const shortage = createShortage()
  const disk = createDiskWatch({ measure: () => measured(), shortage, log }, limits)
  const look = async (state: Partial<DiskState>) => {
    measured = async () => ({ freeBytes: 512 * MB, logBytes: 0, ...state })
    await disk.check()
  }
  return { disk, shortage, look, lines, break: () => (measured = () => Promise.reject(new Error('gone'))) }
}

test('S5: the disk is short below the limit and no longer at it, for other threads too; the log is told once each way', async () => {
  const { disk, shortage, look, lines } = watch()
  await look({ freeBytes: 256 * MB - 1 })
  await look({ freeBytes: 1 })
  expect([disk.isShort(), isShortIn(shortage)]).toEqual([true, true])
  await look({ freeBytes: 256 * MB })
  expect([disk.isShort(), isShortIn(shortage)]).toEqual([false, false])
  expect(lines.map(({ level }) => level)).toEqual(['warn', 'info'])
})

test('S12: a log of changes above 256 MB is told once', async () => {
  const { look, lines } = watch()
  for (const logBytes of [256 * MB, 257 * MB, 300 * MB]) await look({ logBytes })
  expect(lines.map(({ message }) => message)).toEqual([expect.stringContaining('the log of changes grows')])
})

test('a disk that cannot be measured is as it was, and told once', async () => {
  const { disk, look, lines, break: breakIt } = watch()
  await look({ freeBytes: 1 })
  breakIt()
  await disk.check()
  await disk.check()
  expect(disk.isShort()).toBe(true)
  expect(lines.map(({ level }) => level)).toEqual(['warn', 'warn'])
})

test('S5: an observation is refused before it reaches the store while the disk is short, with a word on when to come again', async () => {
  let short = true
  const taken: unknown[] = []
  const recorder: GroupCommit = {
    async submit(incoming) {
      taken.push(incoming)
      return { kind: 'duplicate' }
    },
    waiting: () => 0,
    drained: async () => undefined,
  }
  const guarded = refuseWhenShort(recorder, { isShort: () => short })
  const push = readPush({ body: Buffer.from('{}'), contentEncoding: null, receivedAtMs: 0, keyIndex: 0 })
  await expect(guarded.submit(push)).rejects.toMatchObject({ code: 'storage_unavailable', retryAfterMs: 5000 })
  expect(taken).toHaveLength(0)
  short = false
  expect(await guarded.submit(push)).toEqual({ kind: 'duplicate' })
})
