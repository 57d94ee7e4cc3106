import type { CadencePolicy } from '../polling/cadence.ts'

export interface RecordRules {
  readonly cadence: CadencePolicy
  readonly missedPushGraceMs: number
  readonly historyRetentionMs: number
}
