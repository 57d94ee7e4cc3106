import type { ReplayCursor, ReplayTask } from '../delivery/delivery-list.ts'
import type { HeldSelection } from '../ingest/inbox.ts'

/** The work of a job, by kind. */
export type JobTask = ReplayJobTask | ReprocessJobTask | MoveJobTask

export interface ReplayJobTask extends ReplayTask {
  readonly kind: 'replay'
}

/** Reprocesses pushes that were not recorded, up to the one that was the newest when it was ordered. */
export interface ReprocessJobTask {
  readonly kind: 'reprocess'
  readonly selection: HeldSelection
  readonly upTo: number
}

/** Moves the store; `to` names the new place, without a password. */
export interface MoveJobTask {
  readonly kind: 'move'
  readonly to: string
}

/** A job as operators see it: work that takes too long for one request. Times are epoch milliseconds. */
export interface Job {
  readonly jobId: number
  readonly task: JobTask
  readonly state: 'waiting' | 'running' | 'done' | 'failed' | 'cancelled'
  /** The app that requested it. */
  readonly by: string
  /** How much is done: for a replay, how many deliveries were queued; for a move, how many rows were copied; else how many pushes were reprocessed. */
  readonly done: number
  /** Why it failed; null: it did not. */
  readonly failure: string | null
  readonly createdAtMs: number
  readonly startedAtMs: number | null
  readonly endedAtMs: number | null
}

/** Where a job continues: of a replay a place among deliveries, else the inbox id of the last push that was reprocessed. */
export type JobPlace = ReplayCursor | { readonly inboxId: number }

/** A job that has not ended. */
export interface UnendedJob extends Job {
  /** Where it continues; null: it has not started. */
  readonly place: JobPlace | null
}
