import type { ReplayCursor, ReplayTask } from '../delivery/delivery-list.ts'

/** What takes long, by its kind. */
export type JobTask = { readonly kind: 'replay' } & ReplayTask

/** Long work, as operators look at it. Times are epoch milliseconds. */
export interface Job {
  readonly jobId: number
  readonly task: JobTask
  readonly state: 'waiting' | 'running' | 'done' | 'failed' | 'cancelled'
  /** Who asked for it. */
  readonly by: string
  /** How much of it is done; of a replay, how many deliveries were queued. */
  readonly done: number
  /** Why it failed. */
  readonly failure: string | null
  readonly createdAtMs: number
  readonly startedAtMs: number | null
  readonly endedAtMs: number | null
}

export interface UnendedJob extends Job {
  /** Where it goes on; null: it has not begun. */
  readonly place: ReplayCursor | null
}
