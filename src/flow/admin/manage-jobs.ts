import type { Job } from '../../domain/admin/job.ts'
import { AppError } from '../../domain/errors.ts'
import type { Clock } from '../ports.ts'
import type { ReadSide } from '../read-side.ts'
import type { WriteSide } from '../write-side.ts'

/** What operators see and do of long work (CONTRACT, `/relay/jobs`). Ids are raw path text; `not_found` if nobody's. */
export interface ManageJobs {
  /** The newest first. */
  list(query: {
    readonly cursor: number | null
    readonly limit: number
  }): Promise<{ readonly jobs: readonly Job[]; readonly next: string | null }>
  find(id: string): Promise<Job>
  /** Ends it where it is. One that has ended stays as it ended. */
  cancel(id: string): Promise<Job>
}

export interface ManageJobsPorts {
  readonly write: Pick<WriteSide, 'cancelJob'>
  readonly reads: Pick<ReadSide, 'listJobs' | 'findJob'>
  readonly clock: Clock
}

export function createManageJobs({ write, reads, clock }: ManageJobsPorts): ManageJobs {
  return {
    async list({ cursor, limit }) {
      const jobs = await reads.listJobs({ before: cursor, limit })
      const last = jobs.length < limit ? undefined : jobs.at(-1)
      return { jobs, next: last === undefined ? null : String(last.jobId) }
    },
    find: async (id) => (await reads.findJob(numberOf(id))) ?? unknown(),
    cancel: async (id) => (await write.cancelJob({ jobId: numberOf(id), nowMs: clock.now() })) ?? unknown(),
  }
}

function numberOf(id: string): number {
  return /^\d{1,15}$/.test(id) ? Number(id) : unknown()
}

function unknown(): never {
  throw new AppError('not_found', 'There is no such job.')
}
