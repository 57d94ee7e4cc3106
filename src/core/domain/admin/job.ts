import type { RebuildProgress, RebuildReport } from '../../../upkeep/rebuild/rebuild.rules.ts'
import type { EndedReplay, ReplayCursor } from '../delivery/delivery-list.ts'
import type { HeldSelection } from '../ingest/inbox.ts'

export type JobTask = ReplayJobTask | ReprocessJobTask | DismissJobTask | RebuildJobTask | RetentionJobTask | MoveJobTask | BackupJobTask

export type ReplayJobTask = EndedReplay & { readonly kind: 'replay' }

/** Reprocesses pushes that were not recorded. Pushes that came after the order are not included. */
export interface ReprocessJobTask {
  readonly kind: 'reprocess'
  readonly selection: HeldSelection
  readonly upTo: number
}

/** Dismisses pushes that were quarantined for a reason; null: for any reason. Pushes that came after the order are not included. */
export interface DismissJobTask {
  readonly kind: 'dismiss'
  readonly selection: HeldSelection & { readonly state: 'quarantined' }
  readonly upTo: number
}

export interface RetentionJobTask {
  readonly kind: 'retention'
}

/** Derives the stored data of parcels again, and corrects what differs. `dryRun`: only compares. */
export interface RebuildJobTask {
  readonly kind: 'rebuild'
  readonly dryRun: boolean
  /** The ids of the parcels, ascending; null: all. */
  readonly parcels: readonly number[] | null
  /** How many parcels there were at the time of the order. */
  readonly total: number
}

/** Moves the store; `to` is the new store's address, without a password. */
export interface MoveJobTask {
  readonly kind: 'move'
  readonly to: string
}

export interface BackupJobTask {
  readonly kind: 'backup'
  readonly name: string
}

/** Work that takes too long for one request. Operators order it and see its progress. Times are epoch milliseconds. */
export interface Job {
  readonly jobId: number
  readonly task: JobTask
  readonly state: 'waiting' | 'running' | 'done' | 'failed' | 'cancelled'
  /** The name of the app or person that ordered the job. */
  readonly by: string
  /**
   * How much is done. The unit depends on the kind of job. Replay: queued deliveries. Move: copied rows. Backup: copied pages of the store.
   * Retention: removed records. Rebuild: compared parcels. Other jobs: reprocessed or dismissed pushes.
   */
  readonly done: number
  /** Why the job failed; null: it has not failed. */
  readonly failure: string | null
  readonly createdAtMs: number
  readonly startedAtMs: number | null
  readonly endedAtMs: number | null
  /** The results of a rebuild so far; absent: the job is of another kind, or has not begun. */
  readonly rebuilt?: RebuildReport
}

export const UNENDED_MAX = 100

export function hasUnended(jobs: readonly Job[], kind: JobTask['kind']): boolean {
  return jobs.some(({ task, endedAtMs }) => task.kind === kind && endedAtMs === null)
}

/**
 * Where a job continues. A replay continues after a delivery or event, a rebuild after a parcel, and a job that reprocesses or dismisses pushes
 * after the push `inboxId`. Retention continues the pass that began at `passStartedAtMs`.
 */
export type JobCursor = ReplayCursor | RebuildProgress | { readonly inboxId: number } | { readonly passStartedAtMs: number }

export interface UnendedJob extends Job {
  /** Where the job continues; null: it has not started. */
  readonly cursor: JobCursor | null
}
