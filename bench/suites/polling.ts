import { measurePolling } from '../polling/main.ts'
import type { Suite } from '../suite.ts'

/** The polling brain on simulated time, and a pass of the poller over a large store. */
export const polling: Suite = async ({ settings, say }) => await measurePolling(settings.quick, say)
