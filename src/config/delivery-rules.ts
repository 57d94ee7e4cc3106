import type { Settings } from '../config.ts'

/** A claimed delivery is nobody else's for its timeout and this. */
const LEASE_MARGIN_MS = 5000

/** How the write side settles deliveries and hands them out. */
export function deliveryRules({ delivery }: Pick<Settings, 'delivery'>) {
  const { scheduleMs, jitter, perEndpoint, timeoutMs } = delivery
  return { policy: { scheduleMs, jitter }, perEndpoint, leaseMs: timeoutMs + LEASE_MARGIN_MS }
}
