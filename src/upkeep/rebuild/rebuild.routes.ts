import { location } from '../../core/http/server/answer-schemas.ts'
import { flag, query } from '../../core/http/server/query.ts'
import { jsonBody, queryRoute } from '../../core/http/server/route-shapes.ts'
import { jobSchema, startedJob } from '../jobs/jobs.routes.ts'
import { rebuildOrderSchema } from './rebuild.rules.ts'

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
