import type { Clock } from '../flow/ports.ts'

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() }
