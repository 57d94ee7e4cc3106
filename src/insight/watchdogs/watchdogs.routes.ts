import { z } from 'zod'
import { formatDuration } from '../../core/domain/amounts.ts'
import { readReference } from '../../core/domain/history/order-context.ts'
import {
  type AnswerOf,
  identifier,
  instant,
  named,
  numberedId,
  presentInstant,
  wholeNumber,
} from '../../core/http/server/answer-schemas.ts'
import { count, durationMs, flag, page, query, read, text } from '../../core/http/server/route.ts'
import { callRoute, jsonBody, listRoute, queryRoute } from '../../core/http/server/route-shapes.ts'
import type { ExplainedBreach, ShownRule, TriedBreach } from './manage-watchdogs.ts'
import { TRIED_SINCE_MS_MAX } from './watchdog.rules.ts'
import { watchdogs } from './watchdogs.config.ts'

const values = () => z.array(z.string()).nullable().describe('Null: any.')

const ruleSchema = named('Watchdog', () =>
  z.strictObject({
    name: z.string(),
    when: z.strictObject({ status: values(), detailedStatus: values(), distributionType: values(), label: values() }),
    notWithin: z.string().nullable().describe('Such as `48h`; null, and `notBy` too: a parcel is stalled at once.'),
    notBy: z.string().nullable().describe('A time of day in `zone`.'),
    until: z.array(z.string()).nullable().describe('Null: any later entry ends the watch.'),
    past: z.boolean(),
    loadedAt: instant().nullable().describe('Since when it is in effect as it is; null: not yet.'),
    open: wholeNumber().describe('How many parcels it finds stalled now.'),
  }),
)

const viewSchema = () =>
  z.strictObject({
    watchdogs: z.array(ruleSchema()),
    waiting: wholeNumber().describe(
      'How many parcels are told to be stalled once the carrier was asked about them; at most 100,000 are counted.',
    ),
    heldSince: instant()
      .nullable()
      .describe('Since when nothing is told, because neither pushes nor polls tell anything; null: parcels are told.'),
  })

const breachSchema = named('WatchdogBreach', () =>
  z.strictObject({
    id: numberedId(),
    rule: z.string(),
    why: z
      .string()
      .nullable()
      .describe(
        'Of what the rule finds a parcel stalled, such as `Ingested, and nothing within 48h`; null: the rule is gone or has changed since.',
      ),
    parcel: z.strictObject({ id: numberedId(), identifiers: z.array(identifier()) }),
    reference: z.string().nullable().describe('The number of its order, as an app has said it; null: nobody has.'),
    since: instant().describe('Since when the parcel is stalled by the rule.'),
    checked: z.boolean().describe('Whether the carrier was asked before it was told.'),
    toldAt: instant(),
    endedAt: instant().nullable().describe('Null: it lasts.'),
  }),
)

const triedSchema = () =>
  z.strictObject({
    parcels: wholeNumber().describe('How many parcels were looked at.'),
    breaches: z.array(
      z.strictObject({
        rule: z.string(),
        identifiers: z.array(identifier()),
        since: instant(),
        endedAt: instant().nullable().describe('When the relay learnt what would have ended it; null: it would last.'),
      }),
    ),
    next: wholeNumber().nullable().describe('The `after` of the next request; null: all parcels were looked at.'),
  })

export type WatchdogsAnswer = AnswerOf<typeof viewSchema>
export type BreachAnswer = AnswerOf<typeof breachSchema>
export type TriedAnswer = AnswerOf<typeof triedSchema>

const TRIED_RULES = [{ name: 'no-scan', when: { status: ['Ingested'] }, notWithin: '48h' }]
/** The greatest list of rules is far smaller. */
const BODY_BYTES_MAX = 256 * 1024

export const WATCHDOGS_ROUTES = [
  callRoute('get', '/relay/watchdogs', {
    summary: 'Show the rules that watch over parcels, and how many each finds stalled',
    answers: { 200: ['Watchdogs', viewSchema] },
    answer: async ({ manageWatchdogs }) => {
      const { rules, waiting, heldSinceMs } = await manageWatchdogs.view()
      return [200, { watchdogs: rules.map(presentRule), waiting, heldSince: presentInstant(heldSinceMs) }]
    },
  }),
  listRoute('/relay/watchdogs/breaches', {
    summary: 'List which parcels rules have found stalled, the last told first',
    description:
      'A parcel has at most a hundred. With `parcel` all of them are on one page. With `reference` they are listed parcel by parcel, and a page may hold few or none though there is a `next`.',
    query: query({
      ...page,
      rule: text.describe('Only breaches of the rule with this name.'),
      open: flag.describe('Only breaches that last.'),
      parcel: text.describe('Only breaches of the parcel with this identifier.'),
      reference: read(readReference, 'must be the number of an order: 1 to 100 characters').describe(
        'Only breaches of the parcels of the order with this number. Not together with `parcel`.',
      ),
    }),
    problems: ['bad_tracking_number', 'not_found'],
    items: ['breaches', breachSchema],
    read: ({ manageWatchdogs }, { open, ...query }) => manageWatchdogs.list({ ...query, isOpen: open }),
    present: presentBreach,
  }),
  queryRoute('post', '/relay/watchdogs/try', {
    summary: 'Show what rules would have said of the stored histories',
    description:
      'The body is a list of rules as in `watchdogs` of the config. Each request looks at some parcels; the next goes on with `after`. Nothing is stored or told.',
    query: query({
      since: durationMs(TRIED_SINCE_MS_MAX / 1000)
        .default(30 * 86_400_000)
        .describe('Only breaches since this long ago, such as `30d`.'),
      after: count.nullable().default(null).describe('The `next` of the answer before.'),
    }),
    body: jsonBody(watchdogs, TRIED_RULES, BODY_BYTES_MAX),
    answers: { 200: ['What the rules would have said', triedSchema] },
    example: 'since=30d',
    answer: async ({ manageWatchdogs }, { body, query: { since, after } }) => {
      const { breaches, ...rest } = await manageWatchdogs.tryRules(body, since, after)
      return [200, { ...rest, breaches: breaches.map(presentTried) }]
    },
  }),
]

function presentRule({ rule: { notWithinMs, ...rule }, loadedAtMs, open }: ShownRule) {
  return { ...rule, notWithin: notWithinMs === null ? null : formatDuration(notWithinMs), loadedAt: presentInstant(loadedAtMs), open }
}

function presentBreach({ id, parcelId, identifiers, sinceMs, toldAtMs, endedAtMs, ...breach }: ExplainedBreach): BreachAnswer {
  const parcel = { id: String(parcelId), identifiers }
  const times = { since: presentInstant(sinceMs), toldAt: presentInstant(toldAtMs), endedAt: presentInstant(endedAtMs) }
  return { id: String(id), ...breach, parcel, ...times }
}

function presentTried({ rule, identifiers, sinceMs, endedAtMs }: TriedBreach) {
  return { rule, identifiers, since: presentInstant(sinceMs), endedAt: presentInstant(endedAtMs) }
}
