import type { AttemptResult, FailureReason } from '../../domain/delivery/delivery.ts'
import type { DeliverySigner } from '../../domain/delivery/delivery-request.ts'
import type { ClaimedDelivery } from '../../domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import type { Route } from '../../domain/delivery/post-request.ts'
import type { DeliverySender } from './ports.ts'

/** Knows what signs for an endpoint at a time: while its key is being replaced, both do. At once, if it has just been asked for. */
export type SignerOf = (state: EndpointState, nowMs: number) => DeliverySigner | null | Promise<DeliverySigner | null>

/** How an endpoint is reached. */
export type RouteOf = (state: EndpointState) => Route

export interface SendDeliveryPorts {
  readonly sender: Pick<DeliverySender, 'post'>
  /** Null: the endpoint's key is not to be had, so nothing can be sent to it. */
  readonly signerOf: SignerOf
  readonly routeOf: RouteOf
}

export interface SendDeliveryOptions {
  /** What the ids of events begin with: this relay's own name, made once. */
  readonly relayId: string
}

/** One attempt of a delivery, to its endpoint as it is known; null: it has been removed. */
export type SendDelivery = (
  delivery: ClaimedDelivery,
  state: EndpointState | null,
  nowMs: number,
  /** `onResend`: what is one attempt goes over the wire a second time. */
  callbacks: { readonly onResend: () => void; readonly onEnd: (result: AttemptResult) => void },
) => void

export function createSendDelivery({ sender, signerOf, routeOf }: SendDeliveryPorts, { relayId }: SendDeliveryOptions): SendDelivery {
  return (delivery, state, nowMs, { onResend, onEnd }) => {
    const { sequence, previousSequence, body } = delivery
    if (body === null) {
      onEnd(unsent('body_gone', 'the bytes of the push are no longer kept'))
      return
    }
    const signed = (signer: DeliverySigner | null) => {
      if (state === null || signer === null) {
        onEnd(unsent('forbidden', 'the key of the endpoint is not to be had'))
        return
      }
      const content = { webhookId: `${relayId}_${sequence}`, sequence, previousSequence, body }
      const post = (exchanged: 'exchanged' | undefined, then: (result: AttemptResult) => void) => {
        const headers = signer.headers(content, nowMs, exchanged)
        sender.post({ url: state.endpoint.url, headers, body, route: routeOf(state) }, then)
      }
      const nextKey = signer.hasNext ? state.keys?.next?.sealed : undefined
      post(undefined, (result) => {
        if (nextKey === undefined || !isRefusedSignature(result)) {
          onEnd(result)
          return
        }
        // Perhaps the receiver has the next key already, and checks one header.
        onResend()
        post('exchanged', (again) => onEnd(secondOf(result, again, nextKey)))
      })
    }
    const signer = state === null ? null : signerOf(state, nowMs)
    if (signer instanceof Promise) void signer.then(signed)
    else signed(signer)
  }
}

function isRefusedSignature(result: AttemptResult): boolean {
  return result.kind === 'rejected' && (result.status === 401 || result.status === 403)
}

/** What came of an attempt that was made twice: what the second time came to, in the time of both. */
function secondOf(first: AttemptResult, second: AttemptResult, byNextKey: string): AttemptResult {
  const durationMs = first.durationMs + second.durationMs
  return second.kind === 'accepted' ? { ...second, durationMs, byNextKey } : { ...second, durationMs }
}

function unsent(reason: FailureReason, detail: string): AttemptResult {
  return { kind: 'failed', reason, detail, durationMs: 0, answerStart: new Uint8Array() }
}
