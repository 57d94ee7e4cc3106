import { CLAIMS_PER_ATTEMPT, CLAIMS_PER_ATTEMPT_ON_SERVER } from '../domain/delivery/delivery.ts'
import type { Settings } from './config.ts'

/** The settings that the write side needs to claim and settle deliveries. */
export function deliveryRules({ delivery, store }: Pick<Settings, 'delivery' | 'store'>) {
  const { scheduleMs, jitter, perEndpoint } = delivery
  const claimsPerAttempt = store.engine === 'sqlite' ? CLAIMS_PER_ATTEMPT : CLAIMS_PER_ATTEMPT_ON_SERVER
  return { policy: { scheduleMs, jitter }, perEndpoint, claimsPerAttempt }
}
