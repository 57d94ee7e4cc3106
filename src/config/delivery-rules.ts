import type { Settings } from '../config.ts'
import { CLAIMS_PER_ATTEMPT } from '../domain/delivery.ts'

/** A claimed delivery is nobody else's for the attempts it may have to wait for, its own, and this. */
const LEASE_MARGIN_MS = 5000

/** How the write side settles deliveries and hands them out. */
export function deliveryRules({ delivery }: Pick<Settings, 'delivery'>) {
  const { scheduleMs, jitter, perEndpoint, timeoutMs } = delivery
  return { policy: { scheduleMs, jitter }, perEndpoint, leaseMs: CLAIMS_PER_ATTEMPT * timeoutMs + LEASE_MARGIN_MS }
}
