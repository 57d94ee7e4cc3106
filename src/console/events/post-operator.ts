import type { EndpointState } from '../../core/domain/delivery/endpoint-state.ts'
import { type SendOncePorts, sendOnce } from '../../core/flow/delivery/send-test.ts'
import type { PostOperator } from '../../core/flow/ports.ts'
import type { Reads, Relay } from '../../core/flow/relay.ts'

export interface PostOperatorPorts extends SendOncePorts, Pick<Relay, 'clock'>, Reads<'listEndpoints'> {
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
