import { CLAIMS_PER_ATTEMPT } from '../../../src/core/domain/delivery/delivery.ts'
import type { DeliveryRules } from '../../../src/core/domain/delivery/dispatch-round.ts'
import type { RecordRules } from '../../../src/core/domain/history/recording.ts'
import type { CadencePolicy } from '../../../src/core/domain/polling/cadence.ts'
import type { Retention } from '../../../src/upkeep/retention/retention.rules.ts'
import { DAY_MS, HOUR_MS } from '../runner/constants.ts'

export const cadence: CadencePolicy = {
  byStatusMs: { Created: 2 * HOUR_MS, DeliveryStarted: HOUR_MS / 4 },
  defaultMs: HOUR_MS,
  whenPushIsHealthy: 4,
  tailMs: [HOUR_MS, DAY_MS, 3 * DAY_MS],
  staleAfterMs: 30 * DAY_MS,
}

export const recordOptions: RecordRules = {
  cadence,
  missedPushGraceMs: 600_000,
  historyRetentionMs: 400 * DAY_MS,
  identifierReuseAfterMs: 180 * DAY_MS,
}

export const retention: Retention = {
  rawMs: 90 * DAY_MS,
  historyMs: 400 * DAY_MS,
  deliveriesMs: 30 * DAY_MS,
  feedMs: 90 * DAY_MS,
  auditMs: 400 * DAY_MS,
  reportsMs: 1830 * DAY_MS,
  heldMs: 400 * DAY_MS,
}

export const deliverOptions: DeliveryRules = {
  policy: { scheduleMs: [5000, 300_000], jitter: 0 },
  perEndpoint: 8,
  claimsPerAttempt: CLAIMS_PER_ATTEMPT,
  failingAfterMs: 15 * 60_000,
}
