import type { CadencePolicy } from '../polling/cadence.ts'
import type { ErasureRules } from './erased.ts'

/** The settings for recording observations. Durations are in milliseconds. */
export interface RecordRules extends ErasureRules {
  readonly cadence: CadencePolicy
  readonly missedPushGraceMs: number
  readonly historyRetentionMs: number
  /**
   * When the store was restored from a backup, epoch milliseconds; null or absent: never. Earlier pushes do not count as missed, because
   * they may have come to the store that the restore replaced.
   */
  readonly restoredAtMs?: number | null
}
