import { jsonAnswer, location } from '../../core/http/server/answer-schemas.ts'
import { flag, query } from '../../core/http/server/query.ts'
import { apiRoute } from '../../core/http/server/route.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
import { jobSchema, presentStarted } from '../jobs/jobs.routes.ts'
import { rebuildOrderSchema } from './rebuild.rules.ts'

/** The limit of the body. A hundred identifiers of 40 characters fit. */
const BODY_BYTES_MAX = 16 * 1024

export const REBUILD_ROUTES = [
  apiRoute({
    method: 'post',
    path: '/relay/rebuild',
    summary: 'Derive histories again from the bytes',
    description:
      'Derives each parcel from its pushes and answers by the rules of this version, compares the result with what is stored, and corrects what differs. The feed shows each change of a history; endpoints are sent nothing. With `dryRun`, the report of the job says what would change.',
    scope: 'admin',
    params: {},
    query: query({ dryRun: flag.describe('Changes nothing.') }),
    body: {
      optional: true,
      bytesMax: BODY_BYTES_MAX,
      content: { 'application/json': { schema: () => rebuildOrderSchema, example: {} } },
    },
    answers: () => ({ 202: jsonAnswer('The job that rebuilds', jobSchema(), location()) }),
    problems: ['not_found', 'too_many_jobs'],
    example: { path: {}, query: 'dryRun=true' },
    answer:
      ({ manageRebuild }: Pick<UseCases, 'manageRebuild'>) =>
      async (ctx, { by, body, query: { dryRun } }) => {
        presentStarted(ctx, await manageRebuild.start({ body, dryRun }, by))
      },
  }),
]
