import { CLAIMS_PER_ATTEMPT, CLAIMS_PER_ATTEMPT_ON_SERVER } from '../domain/delivery/delivery.ts'
import type { Settings } from './config.ts'

/** The default of `operator.failingAfter`. It also applies without `operator`, because an endpoint's state is stored anyway. */
const FAILING_AFTER_MS = 15 * 60_000

/** Returns the settings by which the store claims and settles deliveries. */
export function deliveryRules({ delivery, store, operator }: Pick<Settings, 'delivery' | 'store' | 'operator'>) {
  const { scheduleMs, jitter, perEndpoint } = delivery
  const claimsPerAttempt = store.engine === 'sqlite' ? CLAIMS_PER_ATTEMPT : CLAIMS_PER_ATTEMPT_ON_SERVER
  const failingAfterMs = operator?.failingAfterMs ?? FAILING_AFTER_MS
  return { policy: { scheduleMs, jitter }, perEndpoint, claimsPerAttempt, failingAfterMs }
}
