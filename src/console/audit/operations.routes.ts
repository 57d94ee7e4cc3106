import { z } from 'zod'
import {
  ACTION_NAMES,
  ACTOR_KINDS,
  type KeptAction,
  LISTED_LENGTH_MAX,
  type ListedTarget,
  TARGET_KINDS,
} from '../../core/domain/admin/operator-action.ts'
import { readTallyKind, SPANS } from '../../core/domain/admin/tally.ts'
import { OPERATOR_EVENTS, type ToldEvent } from '../../core/domain/delivery/operator-event.ts'
import {
  type AnswerOf,
  instant as instantAnswer,
  named,
  numberedId,
  presentInstant,
  wholeNumber,
} from '../../core/http/server/answer-schemas.ts'
import { instant, oneOf, page, query, read, text } from '../../core/http/server/query.ts'
import { listRoute, queryRoute } from '../../core/http/server/route-shapes.ts'
import { listedEventSchema } from '../events/operator.routes.ts'
import { readTarget, readTimeCursor } from '../overview/operation-queries.ts'

/** Another version of the relay may have written other names. */
const keptName = (names: readonly string[]): z.ZodType<string> => z.enum(names)

const actionSchema = named('AuditedAction', () =>
  z.strictObject({
    id: numberedId(),
    at: instantAnswer(),
    by: z.strictObject({
      kind: keptName(ACTOR_KINDS),
      name: z.string(),
    }),
    address: z.string().nullable().describe('The address that the order came from; null: the machine of the relay.'),
    action: z.string().describe('What was done, such as `endpoint.changed`.'),
    target: z
      .strictObject({
        kind: keptName(TARGET_KINDS),
        id: z.string(),
      })
      .nullable(),
    detail: z.record(z.string(), z.unknown()).describe('More about the order, without secrets.'),
  }),
)

const talliesSchema = named('Tallies', () =>
  z.strictObject({
    tallies: z.array(
      z.strictObject({
        from: instantAnswer().describe('When the hour or day begins.'),
        counts: z.record(z.string(), wholeNumber()).describe('By name, such as `recorded` of pushes or `app:shop` of calls.'),
      }),
    ),
  }),
)

const timed = { ...page, cursor: read(readTimeCursor, 'must be the "next" of the previous page') }

/** Operator events, counts, and the audit trail. */
export const OPERATIONS_ROUTES = [
  listRoute('/relay/operator-events', {
    summary: 'List what happened',
    description: 'Operator events of the last 400 days, newest first, whether or not they are posted anywhere.',
    query: query({ ...timed, event: oneOf(OPERATOR_EVENTS), from: instant, to: instant }),
    items: ['events', listedEventSchema],
    example: 'event=endpoint_failing&limit=10',
    read: ({ operations }, { from, to, ...asked }) => operations.events({ ...asked, fromMs: from, toMs: to }),
    present: presentEvent,
  }),
  queryRoute('get', '/relay/tallies', {
    summary: 'Count by the hour or the day',
    description:
      'Counts for each hour of the last 8 days, or each day (UTC) of the last 400, oldest first. The last 10 seconds are missing.',
    query: query({
      kind: read(readTallyKind, 'must be pushes, missed, polls, attempts, calls, served, disk or endpoint:ID').describe(
        '`pushes` by outcome (the default), `missed` pushes by how late they were found, `polls` by outcome, `attempts` of all endpoints, `calls` to the carrier by who spends them, what was `served` to apps by source (`unavailable`: a 503; `hit` is not counted), the fewest free bytes of the `disk`, or the attempts of `endpoint:ID`.',
      ),
      span: oneOf(SPANS).describe('`hour` if it is left out.'),
      from: instant,
      to: instant,
    }),
    answers: { 200: ['The tallies', talliesSchema] },
    example: 'kind=calls&span=day',
    answer: async ({ operations }, { query: { kind, span, from, to } }) => {
      const tallies = await operations.tallies({ kind: kind ?? 'pushes', span: span ?? 'hour', fromMs: from, toMs: to })
      return [200, { tallies: tallies.map(({ fromMs, counts }) => ({ from: presentInstant(fromMs), counts })) }]
    },
  }),
  listRoute('/relay/audit', {
    summary: 'List who changed what',
    description:
      'The audit trail of the last 400 days, newest first: each order of an operator that was carried out. Even a short page has a `next` if older actions may match.',
    query: query({
      ...timed,
      by: text.pipe(z.string().max(LISTED_LENGTH_MAX).nullable()).describe('The name of who gave the order.'),
      action: oneOf(ACTION_NAMES).describe('What was done.'),
      target: read(readTargetText, 'must be a kind and an id, such as parcel:AB1001, endpoint:3 or delivery:12').describe(
        'What the order was about, such as `parcel:AB1001` (under any of its identifiers), `endpoint:3`, `delivery:12`, `push:5` or `job:2`.',
      ),
      from: instant,
      to: instant,
    }),
    items: ['actions', actionSchema],
    example: 'action=endpoint.changed&limit=10',
    read: ({ operations }, { from, to, ...asked }) => operations.actions({ ...asked, fromMs: from, toMs: to }),
    present: presentAction,
  }),
]

/** Parses `KIND:ID`. */
function readTargetText(given: string): ListedTarget | null {
  const at = given.indexOf(':')
  return at === -1 ? null : readTarget(given.slice(0, at), given.slice(at + 1))
}

function presentEvent({ id, event, atMs, detail }: ToldEvent): object {
  return { ...detail, id: String(id), event, at: presentInstant(atMs) }
}

function presentAction({ id, atMs, by, action, target, detail }: KeptAction): AnswerOf<typeof actionSchema> {
  return { id: String(id), at: presentInstant(atMs), by: { kind: by.kind, name: by.name }, address: by.address, action, target, detail }
}
