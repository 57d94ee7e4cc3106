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
import { OPERATOR_EVENTS, type OperatorEvent, type ToldEvent, WAITED_COUNTED_MAX } from '../../core/domain/delivery/operator-event.ts'
import { presentTest, testSchema } from '../../core/http/delivery/endpoints.routes.ts'
import { type AnswerOf, instant as instantAnswer, named, numberedId, wholeNumber } from '../../core/http/server/answer-schemas.ts'
import { presentInstant } from '../../core/http/server/present.ts'
import { instant, oneOf, page, query, read, text } from '../../core/http/server/query.ts'
import { callRoute, listRoute, queryRoute } from '../../core/http/server/route-shapes.ts'
import { readTarget, readTimeCursor } from '../overview/operation-queries.ts'

const endpointNamed = () => z.strictObject({ id: numberedId(), name: z.string() })
const since = () => instantAnswer().describe('When it began.')
const lastPushAt = () => instantAnswer().nullable().describe('When the last push came that reported something new.')
/** The amount of each kind of data. */
const numbers = () => z.record(z.string(), wholeNumber())
const texts = () => z.array(z.string())

/** The members of each event, except its name and time. An event without a line here does not compile. */
const MEMBERS: Readonly<Record<OperatorEvent['event'], () => Readonly<Record<string, z.ZodType>>>> = {
  endpoint_failing: () => ({
    endpoint: endpointNamed(),
    since: since(),
    failure: z
      .strictObject({
        status: wholeNumber().nullable(),
        reason: z.string().nullable().describe('Why there was no answer.'),
        answer: z.string().describe('The first line of the answer; `#` stands for each word with a digit.'),
      })
      .nullable()
      .describe('Its last failure; null: not known.'),
  }),
  endpoint_recovered: () => ({
    endpoint: endpointNamed(),
    since: since(),
    downForMs: wholeNumber().describe('For how long the endpoint had failed.'),
    waited: wholeNumber().describe(`How many events waited for it then; ${WAITED_COUNTED_MAX}: this many or more.`),
  }),
  endpoint_disabled: () => ({ endpoint: endpointNamed(), because: z.enum(['gone', 'failing', 'unnamed']) }),
  endpoint_removed: () => ({ endpoint: endpointNamed() }),
  credentials_refused: () => ({}),
  credentials_accepted: () => ({ since: since() }),
  carrier_failing: () => ({
    reason: z.string().nullable(),
    status: wholeNumber().nullable().describe('The HTTP status of the reply to the last call; null: that is not why it failed.'),
    since: instantAnswer().describe('When the first of the questions in a row was not answered.'),
  }),
  carrier_recovered: () => ({ since: since() }),
  pushes_silent: () => ({ lastPushAt: lastPushAt() }),
  pushes_lossy: () => ({ lastPushAt: lastPushAt() }),
  pushes_trusted: () => ({ lastPushAt: lastPushAt() }),
  pushes_quarantined: () => ({
    reason: z.string(),
    count: wholeNumber().describe('How many such pushes have come since `since`.'),
    since: instantAnswer().describe('When the first of these pushes came.'),
  }),
  pushes_not_understood: () => ({
    reason: z.string(),
    since: instantAnswer().describe('When the first of the pushes that were not understood came.'),
  }),
  pushes_understood: () => ({ since: since() }),
  disk_low: () => ({ freeBytes: wholeNumber(), freeBytesMin: wholeNumber() }),
  disk_full: () => ({ freeBytes: wholeNumber(), freeBytesMin: wholeNumber() }),
  disk_usable: () => ({
    freeBytes: wholeNumber(),
    since: instantAnswer().describe('When the relay began to refuse pushes.'),
    until: instantAnswer().describe('When it took them again.'),
    refused: wholeNumber().describe('How many pushes it answered with 503 in between. Pushes before a restart are not counted.'),
  }),
  disk_recovered: () => ({ freeBytes: wholeNumber(), since: since() }),
  clock_doubted: () => ({
    because: z.enum(['jumped', 'carrier', 'machine']),
    aheadMs: z.number().int().describe('How far the clock seems to be ahead; negative: behind.'),
  }),
  clock_trusted: () => ({ since: since() }),
  reloaded: () => ({ replica: z.string(), changed: texts(), needsRestart: texts(), problems: texts() }),
  reload_failed: () => ({ replica: z.string(), problems: texts() }),
  certificate_expiring: () => ({ listener: z.string(), expiresAt: instantAnswer(), replica: z.string() }),
  store_restored: () => ({
    backup: z.string(),
    madeAt: instantAnswer().nullable(),
    lastSequence: wholeNumber().describe('The last sequence of the backup.'),
    nextSequence: wholeNumber().describe('The next event of the feed gets a sequence above this.'),
    delivered: wholeNumber().nullable().describe('How many deliveries were accepted after the backup; null: not known.'),
  }),
  backup_failed: () => ({ backup: z.string(), reason: z.string() }),
  backup_recovered: () => ({ backup: z.string(), since: since() }),
  job_ended: () => ({
    job: z.strictObject({ id: numberedId(), kind: z.string() }),
    state: z.string(),
    done: wholeNumber(),
    failure: z.string().nullable(),
  }),
  retention_held: () => ({ held: numbers(), since: since() }),
  retention_gave_up: () => ({ givenUp: numbers(), endpoints: texts() }),
  test: () => ({}),
}

/** An operator event as it is posted, and as it is listed with its id. */
export const operatorEventSchema = named('OperatorEvent', () => anyEvent({}))
const listedEventSchema = named('ListedOperatorEvent', () => anyEvent({ id: numberedId() }))

function anyEvent(more: Readonly<Record<string, z.ZodType>>): z.ZodType {
  const each = Object.entries(MEMBERS).map(([event, members]) =>
    z.strictObject({ ...more, event: z.literal(event), at: instantAnswer(), ...members() }),
  )
  return z.union(each).describe('Ignore events that you do not know: later versions add some.')
}

export type TestAnswer = AnswerOf<typeof testSchema>

/** The address that operator events are posted to. */
export const OPERATOR_ROUTES = [
  callRoute('post', '/relay/operator/test', {
    summary: 'Send a test event to the operator',
    description:
      'Makes one attempt now to send it to `operator.url`, in the format `operator.format`. The event is not kept. An address that was disabled and accepts the event is enabled.',
    answers: { 200: ['What the address answered', testSchema] },
    problems: ['not_found'],
    answer: async ({ testOperator }, { by }) => [200, presentTest(await testOperator(by))],
  }),
  callRoute('post', '/relay/operator/enable', {
    summary: 'Enable the address of operator events',
    description: 'Sends again to `operator.url` what waits, after its 410 or 120 h of failures has disabled it.',
    answers: { 204: ['It is enabled'] },
    problems: ['not_found'],
    answer: async ({ enableOperator }, { by }) => {
      await enableOperator(by)
      return [204]
    },
  }),
]

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
      kind: read(readTallyKind, 'must be pushes, missed, polls, attempts, calls, disk or endpoint:ID').describe(
        '`pushes` by outcome (the default), `missed` pushes by how late they were found, `polls` by outcome, `attempts` of all endpoints, `calls` to the carrier by who spends them, the fewest free bytes of the `disk`, or the attempts of `endpoint:ID`.',
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
