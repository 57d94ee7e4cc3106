import { expect, test } from 'vitest'
import { parsePush } from '../../../src/core/domain/ingest/parse-push.ts'
import type { Recorder } from '../../../src/core/flow/ports.ts'
import {
  createDiskSign,
  createDiskWatch,
  type DiskState,
  type DiskTrouble,
  refuseInTrouble,
  refuseWhenLost,
  showMoving,
  troubleOn,
} from '../../../src/core/runtime/disk-watch.ts'
import { createLogBook } from '../../support/runner/log-book.ts'

const MB = 1024 * 1024
const limits = { freeBytesMin: 256 * MB, logBytesWarn: 256 * MB }

function watch() {
  const { log, lines } = createLogBook()
  const usual: DiskState = { freeBytes: 512 * MB, diskBytes: 1024 * MB, storeBytes: MB, logBytes: 0, lost: null }
  let measured: () => Promise<DiskState> = async () => usual
  const sign = createDiskSign()
  const disk = createDiskWatch({ measure: () => measured(), sign, log }, limits)
  const look = async (state: Partial<DiskState>) => {
    measured = async () => ({ ...usual, ...state })
    await disk.check()
  }
  return { disk, sign, look, lines, break: () => (measured = () => Promise.reject(new Error('gone'))) }
}

test('S5: below the limit the disk counts as short on all threads, and this is logged once', async () => {
  const { disk, sign, look, lines } = watch()
  await look({ freeBytes: 256 * MB - 1 })
  await look({ freeBytes: 1 })
  expect([disk.trouble(), troubleOn(sign)]).toEqual(['short', 'short'])
  await look({ freeBytes: 256 * MB })
  expect([disk.trouble(), troubleOn(sign)]).toEqual([null, null])
  expect(lines.map(({ level }) => level)).toEqual(['warn', 'info'])
})

test('S12: a write-ahead log above 256 MB is logged once', async () => {
  const { look, lines } = watch()
  for (const logBytes of [256 * MB, 257 * MB, 300 * MB]) await look({ logBytes })
  expect(lines.map(({ message }) => message)).toEqual([expect.stringContaining('the write-ahead log keeps growing')])
})

test('if the disk cannot be measured, the last state stays, and the failure is logged once', async () => {
  const { disk, look, lines, break: breakIt } = watch()
  await look({ freeBytes: 1 })
  breakIt()
  await disk.check()
  await disk.check()
  expect(disk.trouble()).toBe('short')
  expect(lines.map(({ level }) => level)).toEqual(['warn', 'warn'])
})

test('S5: an observation is refused before the store while the disk is short', async () => {
  let trouble: DiskTrouble | null = 'short'
  const taken: unknown[] = []
  const recorder: Recorder = {
    async submit(incoming) {
      taken.push(incoming)
      return { kind: 'duplicate' }
    },
    pending: () => 0,
    drained: async () => undefined,
  }
  const guarded = refuseInTrouble(recorder, { trouble: () => trouble })
  const push = parsePush({ body: Buffer.from('{}'), contentEncoding: null, receivedAtMs: 0, keyIndex: 0 })
  await expect(guarded.submit(push)).rejects.toMatchObject({ code: 'storage_unavailable', retryAfterMs: 5000 })
  expect(taken).toHaveLength(0)
  trouble = null
  expect(await guarded.submit(push)).toEqual({ kind: 'duplicate' })
})

test('a store that lost a file refuses everything, and logs the loss and the return once each', async () => {
  const { disk, look, lines } = watch()
  await look({ lost: { name: 'relay.db-wal', fate: 'gone' } })
  await look({ lost: { name: 'relay.db-wal', fate: 'gone' }, freeBytes: 1 })
  expect(disk.trouble()).toBe('lost')
  const verbs = refuseWhenLost({ watch: async (identifier: string) => identifier }, disk)
  await expect(verbs.watch('1001')).rejects.toMatchObject({ code: 'storage_unavailable', retryAfterMs: 5000 })
  await look({ lost: null })
  expect([disk.trouble(), await verbs.watch('1001')]).toEqual([null, '1001'])
  const told = lines.filter(({ fields }) => 'file' in fields)
  expect(told.map(({ level, fields }) => [level, fields])).toEqual([
    ['error', { file: 'relay.db-wal', fate: 'gone' }],
    ['info', { file: 'relay.db-wal' }],
  ])
})

test('a store that is being moved refuses writes, even with room on its disk', async () => {
  const { disk, sign, look } = watch()
  showMoving(sign)
  await look({ freeBytes: 512 * MB })
  expect([disk.trouble(), troubleOn(sign)]).toEqual(['moving', 'moving'])
  const verbs = refuseWhenLost({ write: async () => 'written' }, disk)
  await expect(verbs.write()).rejects.toMatchObject({ code: 'storage_unavailable', retryAfterMs: 2000 })
})
