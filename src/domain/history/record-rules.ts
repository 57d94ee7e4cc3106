import type { CadencePolicy } from '../polling/cadence.ts'

/** The settings that recording obeys; durations in milliseconds. */
export interface RecordRules {
  readonly cadence: CadencePolicy
  readonly missedPushGraceMs: number
  readonly historyRetentionMs: number
}
