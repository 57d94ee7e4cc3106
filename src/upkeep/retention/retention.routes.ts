import { z } from 'zod'
import { formatDuration } from '../../core/domain/amounts.ts'
import { type AnswerOf, instant, location, presentInstant, wholeNumber } from '../../core/http/server/answer-schemas.ts'
import { flag, query } from '../../core/http/server/route.ts'
import { callRoute, queryRoute } from '../../core/http/server/route-shapes.ts'
import { jobSchema, startedJob } from '../jobs/jobs.routes.ts'
import type { RetentionView, WouldGoByStage } from './manage-retention.ts'
import { RETENTION_STAGES, type RetentionCounts } from './retention.rules.ts'

const counts = () => z.partialRecord(z.enum(RETENTION_STAGES), wholeNumber())

const wouldGoSchema = () =>
  z
    .partialRecord(
      z.enum(RETENTION_STAGES),
      z.strictObject({
        count: wholeNumber(),
        isMore: z.boolean().describe('Whether there may be more, because only a part was looked at.'),
      }),
    )
    .describe('`overdue` counts waiting deliveries that would be cancelled. Nothing is counted for `texts`, `composed` and `audit`.')

const passMembers = () => ({
  startedAt: instant(),
  removed: counts(),
  held: counts().describe('Data that is past its time, but is kept because it is undelivered, in quarantine or still needed.'),
  heldSince: instant().nullable().describe('When the first held data became old enough to be removed; null: nothing is held back.'),
  givenUp: counts().describe(
    'Data that was removed although it was still needed, because it had been held back for as long as `retention.held` allows.',
  ),
  endpoints: z.array(z.string()).describe('The ids of endpoints that did not get what was given up.'),
})

const viewSchema = () =>
  z.strictObject({
    retention: z.strictObject({
      raw: z.string(),
      history: z.string(),
      deliveries: z.string(),
      feed: z.string(),
      audit: z.string(),
      reports: z.string(),
      held: z.string(),
    }),
    underWay: z.strictObject({ ...passMembers(), stage: z.enum(RETENTION_STAGES) }).nullable(),
    last: z
      .strictObject({
        ...passMembers(),
        endedAt: instant(),
        isClockDoubted: z.boolean().describe('The clock was doubted, so nothing more was removed.'),
      })
      .nullable()
      .describe('The last pass that ended; null: none has ended yet.'),
    wouldGo: wouldGoSchema(),
  })

export type RetentionAnswer = AnswerOf<typeof viewSchema>

/** How long data is kept, and what that removes. */
export const RETENTION_ROUTES = [
  callRoute('get', '/relay/retention', {
    summary: 'Show how long data is kept, what the last pass removed, and what would be removed now',
    description: 'A pass runs every hour.',
    answers: { 200: ['Retention', viewSchema] },
    answer: async ({ manageRetention }) => [200, presentView(await manageRetention.view(), await manageRetention.wouldGo())],
  }),
  queryRoute('post', '/relay/retention', {
    summary: 'Remove now what is past its time',
    description: 'A job removes it in small batches. The job runs even after a jump of the clock, when the hourly pass waits.',
    query: query({ dryRun: flag.describe('Only counts what would be removed.') }),
    answers: {
      200: ['With `dryRun`', () => z.strictObject({ dryRun: z.literal(true), wouldGo: wouldGoSchema() })],
      202: ['The job', jobSchema, location],
    },
    problems: ['too_many_jobs'],
    example: 'dryRun=true',
    answer: async (ports, { by, query: { dryRun } }) =>
      dryRun
        ? [200, { dryRun: true, wouldGo: await ports.manageRetention.wouldGo() }]
        : startedJob(await ports.manageRetention.start(by), ports),
  }),
]

function presentView({ retention, pass, last }: RetentionView, wouldGo: WouldGoByStage): RetentionAnswer {
  const { rawMs, historyMs, deliveriesMs, feedMs, auditMs, reportsMs, heldMs } = retention
  return {
    retention: {
      raw: formatDuration(rawMs),
      history: formatDuration(historyMs),
      deliveries: formatDuration(deliveriesMs),
      feed: formatDuration(feedMs),
      audit: formatDuration(auditMs),
      reports: formatDuration(reportsMs),
      held: formatDuration(heldMs),
    },
    underWay: pass === null ? null : { ...presentPass(pass), stage: pass.stage },
    last: last === null ? null : { ...presentPass(last), endedAt: presentInstant(last.endedAtMs), isClockDoubted: last.isClockDoubted },
    wouldGo,
  }
}

interface Counted {
  readonly startedAtMs: number
  readonly removed: RetentionCounts
  readonly held: RetentionCounts
  readonly heldSinceMs: number | null
  readonly givenUp: RetentionCounts
  readonly endpoints: readonly string[]
}

function presentPass({ startedAtMs, removed, held, heldSinceMs, givenUp, endpoints }: Counted) {
  return { startedAt: presentInstant(startedAtMs), removed, held, heldSince: presentInstant(heldSinceMs), givenUp, endpoints }
}
