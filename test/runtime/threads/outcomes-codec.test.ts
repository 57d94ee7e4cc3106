import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { RecordOutcome } from '../../../src/domain/history/recording.ts'
import { decodeOutcomes, encodeOutcomes } from '../../../src/runtime/threads/outcomes-codec.ts'

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
    fc.property(fc.array(outcome), (outcomes) => {
      const report = { outcomes, durationMs: 1.5 }
      expect(decodeOutcomes(encodeOutcomes(report))).toEqual(report)
    }),
  )
})
