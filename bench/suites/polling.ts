import { measurePolling } from '../polling/main.ts'
import type { Suite } from '../suite.ts'

/** The polling brain on simulated time, and a pass of the poller over a large store. */
export const polling: Suite = async ({ settings, say }) =>
  await measurePolling(settings.quick ? { parcels: 500, watched: 50_000 } : { parcels: 10_000, watched: 1_000_000 }, say)
