import { z } from 'zod'
import { type OperatorEvent, WAITED_COUNTED_MAX } from '../../core/domain/delivery/operator-event.ts'
import { presentTest, testSchema } from '../../core/http/delivery/endpoints.routes.ts'
import { type AnswerOf, instant as instantAnswer, named, numberedId, wholeNumber } from '../../core/http/server/answer-schemas.ts'
import { callRoute } from '../../core/http/server/route-shapes.ts'

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
    refused: wholeNumber().describe('How many pushes it answered with 503 in between, over restarts.'),
    down: z
      .array(z.strictObject({ lastSeenAt: instantAnswer(), startedAt: instantAnswer() }))
      .describe('When it did not run in between: what was pushed then got no answer. After a kill it has run up to ten seconds longer.'),
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
export const listedEventSchema = named('ListedOperatorEvent', () => anyEvent({ id: numberedId() }))

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
