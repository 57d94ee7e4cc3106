import { type Actor, shownTest } from '../../core/domain/admin/operator-action.ts'
import type { AttemptResult } from '../../core/domain/delivery/delivery.ts'
import type { EndpointState } from '../../core/domain/delivery/endpoint-state.ts'
import { encodeOperatorEvent } from '../../core/domain/delivery/operator-event.ts'
import { AppError } from '../../core/domain/errors.ts'
import { recordTest, type SendOncePorts, sendOnce, sendTest } from '../../core/flow/delivery/dispatching/send-delivery.ts'
import type { PostOperator } from '../../core/flow/ports.ts'
import type { Part, Reads, Relay, Writes } from '../../core/flow/relay-part.ts'
import { presentTest, testSchema } from '../../core/http/delivery/endpoints.routes.ts'
import type { AnswerOf } from '../../core/http/server/answer-schemas.ts'
import { callRoute } from '../../core/http/server/route-shapes.ts'
import type { ReadSide } from '../../core/store/read-store.ts'
import type { Capabilities } from '../../core/wiring/capabilities.ts'
import type { Membership } from '../../core/wiring/replica-name.ts'

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
