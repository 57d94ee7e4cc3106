import type { EndedReplay, ReplayCursor } from '../delivery/delivery-list.ts'
import type { HeldSelection } from '../ingest/inbox.ts'

/** What a job does, by its kind. Each wing adds its own kinds to this interface. */
export interface JobTasks {
  readonly replay: ReplayJobTask
  readonly reprocess: ReprocessJobTask
  readonly dismiss: DismissJobTask
}

export type JobTask = JobTasks[keyof JobTasks]

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
  /** Where the job continues; null: it has not started. */
  readonly cursor: JobCursor | null
}

export const UNENDED_MAX = 100

export function hasUnended(jobs: readonly Job[], kind: JobTask['kind']): boolean {
  return jobs.some(({ task, endedAtMs }) => task.kind === kind && endedAtMs === null)
}

/**
 * Where a job continues: a replay after a delivery or event, and a job that reprocesses or dismisses pushes after the push `inboxId`. Each wing adds
 * the places of its own kinds to this interface.
 */
export interface JobCursors {
  readonly replay: ReplayCursor
  readonly inbox: { readonly inboxId: number }
}

export type JobCursor = JobCursors[keyof JobCursors]
