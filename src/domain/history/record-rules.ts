import type { CadencePolicy } from '../polling/cadence.ts'
import type { ErasureRules } from './erased.ts'

/** The settings that recording obeys. Durations in milliseconds. */
export interface RecordRules extends ErasureRules {
  readonly cadence: CadencePolicy
  readonly missedPushGraceMs: number
  readonly historyRetentionMs: number
  /**
   * When the store was restored from a backup, epoch milliseconds. Pushes from before that time may have come to the store that was
   * replaced. Null or absent: never.
   */
  readonly restoredAtMs?: number | null
}
