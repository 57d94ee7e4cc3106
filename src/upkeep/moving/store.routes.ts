import { z } from 'zod'
import { location } from '../../core/http/server/answer-schemas.ts'
import { callRoute, jsonBody } from '../../core/http/server/route-shapes.ts'
import { jobSchema, startedJob } from '../jobs/jobs.routes.ts'

const place = () => z.object({ to: z.string().describe('`sqlite:PATH` or `postgres://...`.') })

/** Moves of the store. */
export const STORE_ROUTES = [
  callRoute('post', '/relay/store/move', {
    summary: 'Move the store to another place',
    description:
      'The relay keeps running, except for a second or two at the end. All rows are compared. Afterwards the old store refuses to open.',
    body: jsonBody(place, { to: 'sqlite:/var/lib/parcel-relay/relay.db' }),
    answers: { 202: ['The job that moves the store', jobSchema, location] },
    problems: ['not_movable', 'too_many_jobs'],
    answer: async (ports, { by, body }) => startedJob(await ports.moves.start(body, by), ports),
  }),
]
