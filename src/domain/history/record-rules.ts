import type { CadencePolicy } from '../polling/cadence.ts'

/** The settings that decide what recording does; durations in milliseconds. */
export interface RecordRules {
  readonly cadence: CadencePolicy
  readonly missedPushGraceMs: number
  readonly historyRetentionMs: number
}
