import { expect, test } from 'vitest'
import type { Incoming, RecordOutcome } from '../../../../src/core/domain/history/recording.ts'
import { parsePush } from '../../../../src/core/domain/ingest/parse-push.ts'
import {
  createRingBuffer,
  createRingService,
  queueOnWriter,
  type RingServicePorts,
} from '../../../../src/core/runtime/threads/ring-buffer.ts'
import { pushBody } from '../../../support/history/builders.ts'

const PACE: RingServicePorts['throttle'] = { keep: () => {}, begins: () => {} }
const aPush = (location: string) => parsePush({ body: pushBody({ location }), contentEncoding: null, receivedAtMs: 1000, keyIndex: 0 })
const recorded: RecordOutcome = { kind: 'recorded', parcelId: 7, changed: true, newEntries: 1, queued: 0 }

function serviceOf(record: (batch: readonly Incoming[]) => Promise<void>, { batchMax = 9, throttle = PACE } = {}) {
  const serve = createRingService({
    record: async (batch) => {
      await record(batch)
      return { outcomes: batch.map(() => recorded), durationMs: 1 }
    },
    throttle,
    batchMax,
  })
  return () => {
    const ring = createRingBuffer(64 * 1024)
    return queueOnWriter(ring, serve(ring), { bodyBytesMax: 4096 })
  }
}

const open = (record: (batch: readonly Incoming[]) => Promise<void>, batchMax?: number) => serviceOf(record, { batchMax })()

test('observations are recorded in order, even large ones, at most a batch at a time', async () => {
  const batches: (readonly Incoming[])[] = []
  const recorder = open(async (batch) => void batches.push(batch), 2)
  const [small, large, last] = [aPush('Lund'), aPush('L'.repeat(5000)), aPush('Åre')]
  expect([small, large, last].map((push) => recorder.put(push))).toEqual([true, true, true])
  expect(await recorder.commit()).toEqual({ taken: 2, report: { outcomes: [recorded, recorded], durationMs: 1 } })
  expect(await recorder.commit()).toEqual({ taken: 1, report: { outcomes: [recorded], durationMs: 1 } })
  expect(batches).toEqual([[small, large], [last]])
})

test('a commit counts as awaited from its request until it begins', async () => {
  const { promise: held, resolve } = Promise.withResolvers<void>()
  const recorder = open(() => held)
  recorder.put(aPush('Lund'))
  expect(recorder.isAwaited()).toBe(false)
  const committed = recorder.commit()
  expect(recorder.isAwaited()).toBe(false)
  resolve()
  await committed
})

test('a batch that cannot be recorded reports its reason and size, and the next one works', async () => {
  let full = true
  const recorder = open(async () => {
    if (full) throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
  })
  recorder.put(aPush('Lund'))
  expect(await recorder.commit()).toEqual({ taken: 1, error: new Error('SQLITE_FULL: database or disk is full') })
  full = false
  recorder.put(aPush('Åre'))
  expect(await recorder.commit()).toMatchObject({ taken: 1, report: { outcomes: [recorded] } })
})

test('a commit of one ring does not make the other ring wait', async () => {
  const kept: number[] = []
  const batches: (readonly Incoming[])[] = []
  const throttle = { keep: (waiting: number) => void kept.push(waiting), begins: () => {} }
  const another = serviceOf(async (batch) => void batches.push(batch), { throttle })
  const [first, second] = [another(), another()]
  const pushes = ['Lund', 'Malmö', 'Åre'].map(aPush)
  for (const push of pushes.slice(0, 2)) second.put(push)
  for (const push of pushes.slice(2)) first.put(push)
  await first.commit()
  await second.commit()
  expect([kept, batches]).toEqual([
    [3, 2],
    [pushes.slice(2), pushes.slice(0, 2)],
  ])
})
