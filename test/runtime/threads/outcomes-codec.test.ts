import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { RecordOutcome } from '../../../src/domain/history/recording.ts'
import { decodeReport, encodeReport } from '../../../src/runtime/threads/outcomes-codec.ts'

const recorded = {
  kind: fc.constant('recorded' as const),
  parcelId: fc.nat(),
  changed: fc.boolean(),
  newEntries: fc.nat(9),
  queued: fc.nat(9),
}
const outcome = fc.oneof<fc.Arbitrary<RecordOutcome>[]>(
  fc.record(recorded),
  fc.record({ ...recorded, anomalies: fc.constant(['event_clock_ahead', 'text_dropped'] as const) }),
  fc.constant({ kind: 'duplicate' }),
  fc.constant({ kind: 'quarantined', reason: 'schema' }),
  fc.constant({ kind: 'expired' }),
)

test('a report of any outcomes, in any order, is decoded as it was encoded', () => {
  const report = fc.record(
    { outcomes: fc.array(outcome), durationMs: fc.double({ min: 0, noNaN: true }), joined: fc.constant(true as const) },
    { requiredKeys: ['outcomes', 'durationMs'] },
  )
  fc.assert(
    fc.property(report, (given) => {
      expect(decodeReport(structuredClone(encodeReport(given)))).toEqual(given)
    }),
  )
})
