import { z } from 'zod'
import { jsonAnswer, location } from '../../core/http/server/answer-schemas.ts'
import { NO_QUERY } from '../../core/http/server/query.ts'
import { apiRoute } from '../../core/http/server/route.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
import { jobSchema, presentStarted } from '../jobs/jobs.routes.ts'

const BODY_BYTES_MAX = 16 * 1024

const place = () => z.object({ to: z.string().describe('`sqlite:PATH` or `postgres://...`.') })

/** Moves of the store. */
export const STORE_ROUTES = [
  apiRoute({
    method: 'post',
    path: '/relay/store/move',
    summary: 'Move the store to another place',
    description:
      'The relay keeps running, except for a second or two at the end. All rows are compared. Afterwards the old store refuses to open.',
    scope: 'admin',
    params: {},
    query: NO_QUERY,
    body: {
      bytesMax: BODY_BYTES_MAX,
      content: { 'application/json': { schema: place, example: { to: 'sqlite:/var/lib/parcel-relay/relay.db' } } },
    },
    answers: () => ({ 202: jsonAnswer('The job that moves the store', jobSchema(), location()) }),
    problems: ['not_movable', 'too_many_jobs'],
    example: { path: {} },
    answer:
      ({ moves }: Pick<UseCases, 'moves'>) =>
      async (ctx, { by, body }) => {
        presentStarted(ctx, await moves.start(body, by), { moves })
      },
  }),
]
