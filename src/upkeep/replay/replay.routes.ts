import { z } from 'zod'
import { type AnswerOf, idOf, instant, location, presentInstant, wholeNumber } from '../../core/http/server/answer-schemas.ts'
import { leavingOf } from '../../core/http/server/authorize.ts'
import { callRoute, jsonBody } from '../../core/http/server/route-shapes.ts'
import { jobSchema, startedJob } from '../jobs/jobs.routes.ts'
import { replayOrderSchema } from './replay.rules.ts'

const because = () => z.string().optional().describe('Why nothing was selected, for people; absent: something was selected.')

const countedSchema = () =>
  z.strictObject({
    count: wholeNumber(),
    more: z.boolean().describe('Whether the count has stopped early, so that there may be more.'),
    parcels: wholeNumber(),
    oldestQueuedAt: instant().nullable(),
    because: because(),
    dryRun: z.literal(true),
  })

const queuedSchema = () => z.union([z.strictObject({ count: wholeNumber(), because: because(), dryRun: z.literal(false) }), jobSchema()])

export type ReplayCountAnswer = AnswerOf<typeof countedSchema>
export type ReplayAnswer = AnswerOf<typeof queuedSchema>

/** Many deliveries are sent again. */
export const REPLAY_ROUTES = [
  callRoute('post', '/relay/endpoints/:id/replay', {
    summary: 'Send finished deliveries of an endpoint again',
    description:
      'Give at least one of `since`, `sequence`, `parcel` and `of`: deliveries that match all of them are sent, by default only dead and cancelled ones. More than 10,000 become a job.',
    params: { id: idOf('endpoint') },
    body: jsonBody(() => replayOrderSchema, { since: 0 }),
    answers: {
      200: ['With `dryRun`: how many there are (counted up to 10,001), of how many parcels, and when the oldest was queued', countedSchema],
      202: ['They are queued, or a job queues them', queuedSchema, () => location().partial()],
    },
    problems: ['bad_tracking_number', 'not_found', 'too_many_jobs'],
    answer: async (ports, { ctx, by, param, body }) => {
      const answer = await ports.replayMany(param('id'), body, { by, left: leavingOf(ctx.res).signal })
      if (answer.kind === 'job') return startedJob(answer.job, ports)
      if (answer.kind === 'replayed') return [202, { count: answer.count, because: answer.because, dryRun: false }]
      const { count, more, parcels, oldestAtMs, because } = answer
      return [200, { count, more, parcels, oldestQueuedAt: presentInstant(oldestAtMs), because, dryRun: true }]
    },
  }),
]
