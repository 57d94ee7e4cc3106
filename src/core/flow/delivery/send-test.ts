import type { OperatorAction } from '../../domain/admin/operator-action.ts'
import type { AttemptResult } from '../../domain/delivery/delivery.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import { isStoreUnavailable } from '../../domain/errors.ts'
import type { Part, Relay, Writes } from '../relay.ts'
import type { OperatorMessageOf, RouteOf, SignerOf } from './dispatching/send-delivery.ts'
import type { DeliverySender } from './ports.ts'

export interface SendOncePorts extends Pick<Relay, 'clock'> {
  readonly sender: DeliverySender
  readonly signerOf: SignerOf
  readonly routeOf: RouteOf
  readonly operatorMessage?: OperatorMessageOf | undefined
}

/** Makes one attempt to send these bytes to an endpoint, marked as a test, with the endpoint's current settings. Stores nothing. */
export async function sendTest(state: EndpointState, body: Uint8Array, ports: SendOncePorts): Promise<AttemptResult> {
  return await sendOnce(state, { webhookId: `test_${ports.clock.now()}`, body, headers: { 'relay-test': 'true' } }, ports)
}

/** Records the order to send a test. If the store takes nothing, as on a full disk, it is logged: the test was sent, and its answer is known. */
export async function recordTest(order: OperatorAction, { write, log }: Writes<'recordAction'> & Part<'log', 'warn'>): Promise<void> {
  try {
    await write.recordAction(order)
  } catch (err) {
    if (!isStoreUnavailable(err)) throw err
    log.warn({ err, action: order.action }, 'a test was sent, but the store could not record who ordered it')
  }
}

interface Unqueued {
  readonly webhookId: string
  readonly body: Uint8Array
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Makes one attempt to send what is no delivery, and so has no sequence. */
export async function sendOnce(state: EndpointState, { webhookId, body, headers }: Unqueued, ports: SendOncePorts): Promise<AttemptResult> {
  const { sender, signerOf, routeOf, operatorMessage, clock } = ports
  const nowMs = clock.now()
  const route = routeOf(state)
  const url = route.url ?? state.endpoint.url
  const message = state.origin === 'operator' ? (operatorMessage?.(body) ?? null) : null
  if (message !== null) return await sender.send({ url, ...message, route })
  const signer = await signerOf(state, nowMs)
  if (signer === null) return { kind: 'failed', reason: 'forbidden', detail: 'NO_KEY', durationMs: 0, answerStart: new Uint8Array() }
  const signed = signer.headers({ webhookId, sequence: 0, previousSequence: 0, body }, nowMs)
  return await sender.send({ url, headers: { ...signed, ...headers }, body, route })
}
