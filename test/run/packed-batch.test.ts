import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Incoming, RecordOutcome } from '../../src/flow/ports.ts'
import { packBatch, packOutcomes, unpackBatch, unpackOutcomes } from '../../src/run/packed-batch.ts'
import { aPoll } from '../support/builders.ts'

const push = fc.record({
  kind: fc.constant('push' as const),
  body: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  contentEncoding: fc.option(fc.string()),
  receivedAtMs: fc.nat(),
  keyIndex: fc.nat(3),
})
const poll = fc.record({
  kind: fc.constant('poll' as const),
  observation: fc.constantFrom(aPoll(), aPoll({ language: 'sv' })),
  watch: fc.boolean(),
})

test('a batch unpacks as what was packed, in its order', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof<fc.Arbitrary<Incoming>[]>(push, poll)), (batch) => {
      expect(unpackBatch(packBatch(batch))).toEqual(batch)
    }),
  )
})

test('a body that is a part of a larger buffer travels alone', () => {
  const received = Buffer.alloc(65_536, 'x')
  const { bytes } = packBatch([{ kind: 'push', body: received.subarray(100, 110), contentEncoding: null, receivedAtMs: 1, keyIndex: 0 }])
  expect(bytes.byteLength).toBe(10)
})

const outcome = fc.oneof<fc.Arbitrary<RecordOutcome>[]>(
  fc.record({
    kind: fc.constant('recorded' as const),
    parcelId: fc.nat(),
    changed: fc.boolean(),
    newEntries: fc.nat(9),
    queued: fc.nat(9),
  }),
  fc.constant({ kind: 'recorded', parcelId: 7, changed: true, newEntries: 1, queued: 0, remark: 'event_clock_ahead' }),
  fc.constant({ kind: 'duplicate' }),
  fc.constant({ kind: 'quarantined', reason: 'schema' }),
  fc.constant({ kind: 'expired' }),
)

test('what became of a batch unpacks as what was packed', () => {
  fc.assert(
    fc.property(fc.array(outcome), fc.array(fc.nat()), (outcomes, touchedParcels) => {
      const report = { outcomes, touchedParcels, durationMs: 1.5 }
      expect(unpackOutcomes(packOutcomes(report))).toEqual(report)
    }),
  )
})
