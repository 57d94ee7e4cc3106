import type { Settings } from './config.ts'

/** How the write side settles deliveries and hands them out. */
export function deliveryRules({ delivery }: Pick<Settings, 'delivery'>) {
  const { scheduleMs, jitter, perEndpoint } = delivery
  return { policy: { scheduleMs, jitter }, perEndpoint }
}
