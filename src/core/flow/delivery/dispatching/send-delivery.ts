import type { OperatorMessage } from '../../../../console/events/operator-words.rules.ts'
import type { AttemptResult, FailureReason } from '../../../domain/delivery/delivery.ts'
import type { DeliverySigner, Route } from '../../../domain/delivery/delivery-request.ts'
import type { ClaimedDelivery } from '../../../domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import type { Relay } from '../../relay.ts'
import type { DeliverySender } from '../ports.ts'

/**
 * Finds the signer of an endpoint; null: the key cannot be opened. While the key is being replaced, the signer signs with both keys. A
 * cached signer is returned without a promise.
 */
export type SignerOf = (state: EndpointState, nowMs: number) => DeliverySigner | null | Promise<DeliverySigner | null>

export type RouteOf = (state: EndpointState) => Route

/** Writes an operator event as a message for people; null: the relay sends the signed event instead. */
export type OperatorMessageOf = (event: Uint8Array) => OperatorMessage | null

export interface SendDeliveryPorts extends Pick<Relay, 'clock'> {
  readonly sender: Pick<DeliverySender, 'post'>
  readonly signerOf: SignerOf
  readonly routeOf: RouteOf
  readonly operatorMessage?: OperatorMessageOf | undefined
}

export interface SendDeliveryOptions {
  /** The prefix of event ids. */
  readonly relayId: string
}

export interface SendCallbacks {
  /** Returns the present state of the endpoint; null: nothing may be sent to it, or its state is not known. */
  readonly stateNow: () => EndpointState | null
  /** Called when the endpoint has refused the signature, and the attempt is sent again with the next key. */
  readonly onResend: () => void
  /** Called once. The result is `withdrawn` if nothing was sent because the endpoint has changed. */
  readonly onEnd: (result: AttemptResult) => void
}

/** Makes one attempt of a delivery. `state` null: its endpoint was removed. */
export type SendDelivery = (delivery: ClaimedDelivery, state: EndpointState | null, nowMs: number, callbacks: SendCallbacks) => void

export function createSendDelivery(ports: SendDeliveryPorts, { relayId }: SendDeliveryOptions): SendDelivery {
  const { sender, signerOf, routeOf, operatorMessage, clock } = ports
  return (delivery, state, nowMs, { stateNow, onResend, onEnd }) => {
    const { sequence, previousSequence, body } = delivery
    if (body === null) {
      onEnd(unsent('body_gone', 'the bytes of the push are no longer kept'))
      return
    }
    const signed = (signer: DeliverySigner | null) => {
      if (state === null || signer === null) {
        onEnd(unsent('forbidden', 'the key of the endpoint cannot be opened'))
        return
      }
      const content = { webhookId: `${relayId}_${sequence}`, sequence, previousSequence, body }
      const route = routeOf(state)
      const url = route.url ?? state.endpoint.url
      // Connecting may take seconds. Meanwhile an operator may disable the endpoint or give it another key or URL (DOMAIN 7.4).
      const mayLeave = () => {
        const now = stateNow()
        return (
          now !== null &&
          now.endpoint.url === state.endpoint.url &&
          signerOf(now, clock.now()) === signer &&
          isSameRoute(routeOf(now), route)
        )
      }
      const post = (exchanged: 'exchanged' | undefined, then: (result: AttemptResult) => void) => {
        const headers = signer.headers(content, nowMs, exchanged)
        sender.post({ url, headers, body, route, mayLeave }, then)
      }
      const nextKey = signer.hasNext ? state.keys?.next?.sealed : undefined
      post(undefined, (result) => {
        if (nextKey === undefined || !isRefusedSignature(result)) {
          onEnd(result)
          return
        }
        // Put the next key's signature into the usual header, because the receiver may already have that key and check only this header.
        onResend()
        post('exchanged', (again) => onEnd(secondOf(result, again, nextKey)))
      })
    }
    const message = state?.origin === 'operator' ? (operatorMessage?.(body) ?? null) : null
    if (state !== null && message !== null) {
      const route = routeOf(state)
      const mayLeave = () => {
        const now = stateNow()
        return now !== null && isSameRoute(routeOf(now), route)
      }
      sender.post({ url: route.url ?? state.endpoint.url, ...message, route, mayLeave }, onEnd)
      return
    }
    const signer = state === null ? null : signerOf(state, nowMs)
    if (signer instanceof Promise) void signer.then(signed)
    else signed(signer)
  }
}

function isSameRoute(one: Route, other: Route): boolean {
  if (one === other) return true
  return one.proxy === other.proxy && one.ca === other.ca && one.client?.cert === other.client?.cert && one.url === other.url
}

function isRefusedSignature(result: AttemptResult): boolean {
  return result.kind === 'rejected' && (result.status === 401 || result.status === 403)
}

/** Returns the result of an attempt that was sent twice: the second outcome, with the sum of both durations. */
function secondOf(first: AttemptResult, second: AttemptResult, byNextKey: string): AttemptResult {
  const durationMs = first.durationMs + second.durationMs
  return second.kind === 'accepted' ? { ...second, durationMs, byNextKey } : { ...second, durationMs }
}

function unsent(reason: FailureReason, detail: string): AttemptResult {
  return { kind: 'failed', reason, detail, durationMs: 0, answerStart: new Uint8Array() }
}
