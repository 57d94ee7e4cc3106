import { z } from 'zod'
import { type Actor, shownTest } from '../../core/domain/admin/operator-action.ts'
import type { AttemptResult } from '../../core/domain/delivery/delivery.ts'
import type { EndpointState } from '../../core/domain/delivery/endpoint-state.ts'
import { encodeOperatorEvent, type OperatorEvent, WAITED_COUNTED_MAX } from '../../core/domain/delivery/operator-event.ts'
import { AppError } from '../../core/domain/errors.ts'
import { recordTest, type SendOncePorts, sendOnce, sendTest } from '../../core/flow/delivery/dispatching/send-delivery.ts'
import type { PostOperator } from '../../core/flow/ports.ts'
import type { Part, Reads, Relay, Writes } from '../../core/flow/relay.ts'
import { presentTest, testSchema } from '../../core/http/delivery/endpoints.routes.ts'
import { type AnswerOf, instant as instantAnswer, named, numberedId, wholeNumber } from '../../core/http/server/answer-schemas.ts'
import { callRoute } from '../../core/http/server/route-shapes.ts'
import type { ReadSide } from '../../core/store/read-store.ts'
import type { Capabilities } from '../../core/wiring/capabilities.ts'
import type { Membership } from '../../core/wiring/membership.ts'

interface EnableOperatorPorts extends Part<'clock', 'now'>, Reads<'listEndpoints'>, Writes<'changeEndpoint'> {
  /** Called after the endpoint for operator events was enabled. */
  readonly review: () => void
}

/** Enables the endpoint for operator events after a 410 or 120 hours of failures has disabled it. What has waited is sent then. */
export type EnableOperator = ReturnType<typeof createEnableOperator>

const DAY_MS = 86_400_000

export function createEnableOperator({ reads, write, clock, review }: EnableOperatorPorts) {
  async function enable({ endpoint }: EndpointState, by: Actor | null): Promise<void> {
    const nowMs = clock.now()
    const action = by === null ? {} : { action: { atMs: nowMs, by, action: 'operator.enabled' as const, target: null, detail: {} } }
    await write.changeEndpoint({ id: endpoint.id, change: { enabled: true }, key: null, nowMs, ...action })
    review()
  }

  return {
    /** By an operator's order. Does nothing if it is enabled. Throws `not_found` if no config names an address. */
    async enable(by: Actor) {
      const state = await operatorState(reads)
      if (state.disabled !== null) await enable(state, by)
    },
    /** Enables it if it has been disabled for a day. It reports all trouble but its own, so nobody may know of that. */
    async tryDaily() {
      const state = (await reads.listEndpoints()).find(isOperator)
      if (state?.disabled !== 'gone' && state?.disabled !== 'failing') return
      // A clock that was set back must not put this off.
      if (Math.abs(clock.now() - (state.disabledSince?.atMs ?? 0)) >= DAY_MS) await enable(state, null)
    },
  }
}

function isOperator({ origin }: EndpointState): boolean {
  return origin === 'operator'
}

/** Returns the endpoint for operator events. Throws `not_found` if no config names an address. */
async function operatorState(reads: Pick<ReadSide, 'listEndpoints'>): Promise<EndpointState> {
  const state = (await reads.listEndpoints()).find(isOperator)
  if (state === undefined || state.disabled === 'unnamed')
    throw new AppError('not_found', 'No address for operator events is configured: write operator.url in the config, and reload.')
  return state
}

interface TestOperatorPorts extends SendOncePorts, Reads<'listEndpoints'>, Writes<'recordAction'>, Part<'log', 'warn'> {
  readonly enable: EnableOperator['enable']
}

/**
 * Makes one attempt now to send a test event to the address in `operator.url`, even if its answers have disabled it. If the address accepts the event,
 * it is enabled. Throws `not_found` if no config names an address.
 */
export type TestOperator = (by: Actor) => Promise<AttemptResult>

export function createTestOperator(ports: TestOperatorPorts): TestOperator {
  const { reads, clock, enable } = ports
  return async (by) => {
    const state = await operatorState(reads)
    const result = await sendTest(state, encodeOperatorEvent({ event: 'test' }, clock.now()), ports)
    const action = { atMs: clock.now(), by, action: 'operator.tested', target: null, detail: { result: result.kind } } as const
    await recordTest({ ...action, shown: shownTest(result) }, ports)
    if (result.kind === 'accepted') await enable(by)
    return result
  }
}

interface PostOperatorPorts extends SendOncePorts, Pick<Relay, 'clock'>, Reads<'listEndpoints'> {
  /** Whether this replica delivers to an endpoint now. */
  readonly delivers: (endpointId: string) => boolean
}

export function createPostOperator(ports: PostOperatorPorts, { relayId }: { readonly relayId: string }): PostOperator {
  const { reads, clock, delivers } = ports
  let failures = 0
  let waitsUntilMs = Number.NEGATIVE_INFINITY
  return async (event, id) => {
    if (clock.monotonic() < waitsUntilMs) return false
    const state = (await reads.listEndpoints()).find(({ origin }) => origin === 'operator')
    if (state === undefined || state.disabled !== null || !delivers(state.endpoint.id)) return false
    const { kind } = await sendOnce(state, { webhookId: `${relayId}_${id}`, body: event }, ports)
    failures = kind === 'accepted' ? 0 : failures + 1
    waitsUntilMs = kind === 'accepted' ? Number.NEGATIVE_INFINITY : clock.monotonic() + waitAfter(failures, state)
    return kind === 'accepted'
  }
}

function waitAfter(failures: number, { endpoint: { scheduleMs } }: EndpointState): number {
  return scheduleMs?.[Math.min(failures, scheduleMs.length) - 1] ?? 0
}

export type Operator = ReturnType<typeof openOperator>

/** Makes what concerns the address in `operator.url`. */
export function openOperator({ delivery, replicas }: Pick<Capabilities, 'delivery'> & { readonly replicas: Pick<Membership, 'delivers'> }) {
  const { sending, relayId, endpointsChanged: review } = delivery
  const { enable, tryDaily } = createEnableOperator({ ...sending, review })
  return {
    enable,
    tryDaily,
    test: createTestOperator({ ...sending, enable }),
    post: createPostOperator({ ...sending, delivers: replicas.delivers }, { relayId }),
  }
}

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
  watchdogs_held: () => ({ held: wholeNumber().describe('How many parcels may be stalled.'), since: since() }),
  watchdogs_resumed: () => ({ since: since() }),
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
