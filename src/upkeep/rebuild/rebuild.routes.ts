import type { Job } from '../../core/domain/admin/job.ts'
import type { Actor, OperatorAction } from '../../core/domain/admin/operator-action.ts'
import { AppError } from '../../core/domain/errors.ts'
import { describeBadIdentifier, parseIdentifier } from '../../core/domain/identifiers.ts'
import { readInput, wrongInput } from '../../core/domain/read-input.ts'
import type { Reads, Relay, Writes } from '../../core/flow/relay-part.ts'
import { location } from '../../core/http/server/answer-schemas.ts'
import { flag, query } from '../../core/http/server/route.ts'
import { jsonBody, queryRoute } from '../../core/http/server/route-shapes.ts'
import { jobSchema, startedJob } from '../jobs/jobs.routes.ts'
import { rebuildOrderSchema } from './rebuild.rules.ts'

/** Lets operators derive the stored histories of parcels again from what was received (CONTRACT, `rebuild`). */
export interface ManageRebuild {
  /**
   * Queues a rebuild. `body` may select parcels: `{ "identifiers": [...] }`. `dryRun`: only compares the stored histories with the derived
   * ones. Throws `bad_request`, `not_found` and `too_many_jobs`.
   */
  start(order: { readonly body: unknown; readonly dryRun: boolean }, by: Actor): Promise<Job>
}

interface ManageRebuildPorts extends Pick<Relay, 'clock'>, Reads<'findParcel'>, Writes<'startJob'> {
  /** Counts the parcels in the store. */
  readonly counts: () => Promise<{ readonly parcels: number }>
  /** Called when a job was queued. */
  readonly work: () => void
}

export function createManageRebuild({ write, reads, counts, clock, work }: ManageRebuildPorts): ManageRebuild {
  async function idOf(text: string, at: number): Promise<number> {
    const identifier = parseIdentifier(text)
    if (identifier === null)
      throw wrongInput('body', 'identifiers', `Value ${at + 1} of identifiers is wrong. ${describeBadIdentifier(text)}`)
    const parcel = await reads.findParcel(identifier)
    if (parcel === null) throw new AppError('not_found', `The relay knows no parcel with the identifier ${identifier}.`)
    return parcel.parcelId
  }

  return {
    async start({ body, dryRun }, by) {
      const isEmpty = body === undefined || body === null || body === ''
      const { identifiers } = isEmpty ? {} : readInput('body', rebuildOrderSchema, body)
      const found = identifiers === undefined ? null : await Promise.all(identifiers.map(idOf))
      // The job stores ids and no identifiers, because the identifiers of an erased parcel must not remain in the store.
      const parcels = found === null ? null : [...new Set(found)].sort((a, b) => a - b)
      const total = parcels?.length ?? (await counts()).parcels
      const nowMs = clock.now()
      const detail = { dryRun, parcels: parcels?.length ?? 'all' }
      const action: OperatorAction = { atMs: nowMs, by, action: 'store.rebuild_started', target: null, detail }
      const job = await write.startJob({ task: { kind: 'rebuild', dryRun, parcels, total }, by: by.name, nowMs, action })
      if (job === null) throw new AppError('too_many_jobs', 'A hundred jobs have not ended yet. Cancel one, or ask again later.')
      work()
      return job
    },
  }
}

export const REBUILD_ROUTES = [
  queryRoute('post', '/relay/rebuild', {
    summary: 'Derive histories again from the bytes',
    description:
      'Derives each parcel from its pushes and answers by the rules of this version, compares the result with what is stored, and corrects what differs. The feed shows each change of a history; endpoints are sent nothing. With `dryRun`, the report of the job says what would change.',
    query: query({ dryRun: flag.describe('Changes nothing.') }),
    body: { optional: true, ...jsonBody(() => rebuildOrderSchema, {}) },
    answers: { 202: ['The job that rebuilds', jobSchema, location] },
    problems: ['not_found', 'too_many_jobs'],
    example: 'dryRun=true',
    answer: async (ports, { by, body, query: { dryRun } }) => startedJob(await ports.manageRebuild.start({ body, dryRun }, by), ports),
  }),
]
