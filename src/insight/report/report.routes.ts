import { z } from 'zod'
import { type AnswerOf, instant, named, wholeNumber } from '../../core/http/server/answer-schemas.ts'
import { query, text } from '../../core/http/server/route.ts'
import { queryRoute } from '../../core/http/server/route-shapes.ts'
import { COUNTS, PROVED_BY_PARCELS, PROVED_BY_PUSHES } from './report.rules.ts'

const day = () => z.string().describe('A day in the time zone of the relay, such as `2026-10-31`.')

const counts = () =>
  z
    .strictObject({
      pushed: wholeNumber().describe('Entries that a push brought.'),
      late: wholeNumber().describe('Of these, those that came later than `poll.missedPushGrace`, or after they had counted as lost.'),
      lost: wholeNumber().describe('Entries of known parcels that polls found, and that no push has brought.'),
      repeated: wholeNumber().describe('Pushes that said again what a push had said.'),
      reworded: wholeNumber().describe('Pushes that said something else of an entry that a push had brought.'),
      outOfOrder: wholeNumber().describe('Pushes that brought an entry older than one that was known.'),
      quarantined: wholeNumber().describe('Pushes with a good signature that are no valid event.'),
      disagreed: wholeNumber().describe('Histories of which a push and a poll said different things.'),
      answered: wholeNumber().describe('Questions that were answered, the slow ones included.'),
      slow: wholeNumber().describe('Of these, those that took more than 5 s.'),
      failed: wholeNumber().describe('Questions without a usable answer.'),
      limited: wholeNumber().describe('Questions answered with 429.'),
      badSignature: wholeNumber().describe('Requests to the webhook with a bad signature. Anybody can send these.'),
      notTaken: wholeNumber().describe('Pushes that this relay answered with 503.'),
    })
    .describe('Counts by name.')

const reportSchema = named('Report', () =>
  z.strictObject({
    month: z.string(),
    zone: z.string().describe('The time zone of the days.'),
    state: z
      .enum(['running', 'open', 'closed'])
      .describe('`open`: the month is over, and its counts still change. `closed`: what changes is listed as a correction.'),
    closesOn: day(),
    countedFrom: day().describe('The first day that the relay has counted.'),
    graceMs: wholeNumber().describe('How late a push may be, `poll.missedPushGrace`, as it is set now.'),
    counts: counts(),
    lateness: z
      .strictObject({ p50Ms: wholeNumber(), p95Ms: wholeNumber(), p99Ms: wholeNumber() })
      .nullable()
      .describe('From the event to its first push, to 5 %; null: there was no push.'),
    latenessBars: z
      .array(z.strictObject({ upToMs: wholeNumber().nullable().describe('Null: later.'), count: wholeNumber() }))
      .describe('Pushes by lateness.'),
    days: z.array(z.strictObject({ day: day(), counts: counts() })),
    outages: z
      .array(z.strictObject({ from: instant(), until: instant().nullable().describe('Null: it lasts.') }))
      .describe('When the carrier answered no question, the earliest first.'),
    corrections: z
      .array(z.strictObject({ foundOn: day(), changes: z.partialRecord(z.enum(COUNTS), z.int()) }))
      .describe('What changed after the month had closed, by the day on which it was found.'),
    evidence: z
      .array(
        z.strictObject({
          name: z.enum([...PROVED_BY_PARCELS, ...PROVED_BY_PUSHES]),
          of: z.enum(['inbox', 'parcels']).describe('`ids` are ids of pushes in the inbox, or identifiers of parcels.'),
          ids: z.array(z.string()),
          more: wholeNumber().describe('How many more are stored than `ids` names.'),
          removed: wholeNumber().describe('How many retention or an erasure has removed.'),
          unkept: wholeNumber().describe('How many were never kept: of pushes only the first 20 of each day are.'),
        }),
      )
      .describe('What proves the counts.'),
  }),
)

export type ReportAnswer = AnswerOf<typeof reportSchema>

/** The report of a month. */
export const REPORT_ROUTES = [
  queryRoute('get', '/relay/report', {
    summary: 'Show what the carrier did in a month',
    description: 'Pushes that were lost, late or odd, polls and outages, by day, with what proves them.',
    query: query({ month: text.describe('Such as `2026-10`. Default: the present month.') }),
    answers: { 200: ['The report', reportSchema] },
    problems: ['bad_request', 'not_found'],
    answer: async ({ reports }, { query: { month } }) => [200, await reports.read(month)],
  }),
]
