import type { Settings } from './config.ts'

/** The settings that the write side needs to claim and settle deliveries. */
export function deliveryRules({ delivery }: Pick<Settings, 'delivery'>) {
  const { scheduleMs, jitter, perEndpoint } = delivery
  return { policy: { scheduleMs, jitter }, perEndpoint }
}
