import type { Job } from '../../core/domain/admin/job.ts'
import type { Actor } from '../../core/domain/admin/operator-action.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { Reads, Relay, Writes } from '../../core/flow/relay-part.ts'
import { rebuiltBy } from '../rebuild/rebuild.rules.ts'

/** Lets operators view and cancel jobs (CONTRACT, `/relay/jobs`). Ids are raw text from the path. Throws `not_found` for an unknown id. */
export type ManageJobs = ReturnType<typeof createManageJobs>

type Parts = Pick<Relay, 'clock'> & Reads<'listJobs' | 'findJob' | 'loadNames'> & Writes<'cancelJob'>

export function createManageJobs({ write, reads, clock }: Parts) {
  /** Adds identifiers to the parcels that rebuilds give as examples. Jobs store only ids of parcels, because a parcel may be erased. */
  async function withNames(jobs: readonly Job[]): Promise<readonly Job[]> {
    const parcelIds = jobs.flatMap((job) => rebuiltBy(job)?.examples.map(({ parcelId }) => parcelId) ?? [])
    if (parcelIds.length === 0) return jobs
    const names = await reads.loadNames([...new Set(parcelIds)])
    return jobs.map((job) => {
      const { cursor } = job
      if (cursor === null || !('rebuiltTo' in cursor)) return job
      const examples = cursor.report.examples.map((example) => ({ ...example, identifier: names.get(example.parcelId)?.[0] ?? null }))
      return { ...job, cursor: { ...cursor, report: { ...cursor.report, examples } } }
    })
  }
  return {
    /** Lists jobs, the newest first. `cursor` null: the first page. */
    async list({
      cursor,
      limit,
    }: {
      readonly cursor: number | null
      readonly limit: number
    }): Promise<{ readonly jobs: readonly Job[]; readonly next: string | null }> {
      const jobs = await reads.listJobs({ before: cursor, limit })
      const last = jobs.length < limit ? undefined : jobs.at(-1)
      return { jobs: await withNames(jobs), next: last === undefined ? null : String(last.jobId) }
    },
    async find(id: string): Promise<Job> {
      const job = (await reads.findJob(numberOf(id))) ?? unknown()
      return (await withNames([job]))[0] ?? unknown()
    },
    /** Cancels a job. Undoes nothing that the job has done. Does nothing to a job that has ended. */
    async cancel(id: string, by: Actor): Promise<Job> {
      const [jobId, nowMs] = [numberOf(id), clock.now()]
      const action = { atMs: nowMs, by, action: 'job.cancelled', target: { kind: 'job', id: String(jobId) }, detail: {} } as const
      return (await write.cancelJob({ jobId, nowMs, action })) ?? unknown()
    },
  }
}

function numberOf(id: string): number {
  return /^\d{1,15}$/.test(id) ? Number(id) : unknown()
}

function unknown(): never {
  throw new AppError('not_found', 'There is no such job.')
}
