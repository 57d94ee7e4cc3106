import type { CarrierState } from '../../../src/core/domain/polling/carrier-answer.ts'

export const CARRIER: CarrierState = {
  credentials: 'accepted',
  refusal: null,
  lastAnswerAtMs: 1000,
  lastFailure: null,
  budget: { waiting: 0, inFlight: 0, callsToday: 1, callsPerDay: 100 },
  breaker: { state: 'closed', failures: 0, restMs: 0 },
}
