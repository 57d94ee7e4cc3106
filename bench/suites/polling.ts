import { measurePolling } from '../polling/main.ts'
import type { Suite } from '../suite.ts'

/** The cadence on simulated time, and a poller pass over a large store. */
export const polling: Suite = async ({ settings, say }) => await measurePolling(settings.quick, say)
