import { type AttemptResult, isWithdrawn } from '../../../domain/delivery/delivery.ts'
import type { ClaimedDelivery, SettledAttempt } from '../../../domain/delivery/dispatch-round.ts'
import type { Part, Relay } from '../../relay.ts'
import type { EndpointLog } from './endpoint-log.ts'
import type { EndpointQueue } from './endpoint-queue.ts'
import type { EndpointRates } from './endpoint-rates.ts'
import type { SendDelivery } from './send-delivery.ts'

export interface DeliveryAttemptsPorts extends Pick<Relay, 'clock'>, Part<'meter', 'deliveryAttempted'> {
  readonly send: SendDelivery
  readonly rates: EndpointRates
  readonly random: () => number
  readonly endpointLog: EndpointLog
  /** Whether attempts to an endpoint may start now. */
  readonly mayBegin: (endpointId: string) => boolean
  /** Whether this replica has read the states of the endpoints since it last heard of a change. */
  readonly areEndpointsKnown: () => boolean
  /** Called when a claim was released, so that another delivery may be claimed instead. */
  readonly onReleased: () => void
  /** Rises whenever this replica loses all its endpoints; see `HeldEndpoints`. */
  readonly term: () => number
  /** Called when an attempt has ended. Returns a function that must be called when the next attempts at the endpoint have started. */
  readonly onEnded: (attempt: SettledAttempt) => (queue: EndpointQueue) => void
}

/** Starts attempts while endpoints have room, and counts the running ones. */
export type DeliveryAttempts = ReturnType<typeof createDeliveryAttempts>

export function createDeliveryAttempts(ports: DeliveryAttemptsPorts) {
  const { send, rates, clock, meter, endpointLog } = ports
  let underWay = 0
  let whenIdle = (): void => {}

  /** Starts the next attempt if there is room for it. Returns whether it did. */
  function beginNext(queue: EndpointQueue): boolean {
    if (!queue.hasWaiting || !ports.mayBegin(queue.endpointId)) return false
    const delivery = queue.takeNext()
    if (delivery !== null) begin(delivery, queue)
    return delivery !== null
  }

  const beginAll = (queue: EndpointQueue) => queue.beginWhile(beginNext)

  function begin(delivery: ClaimedDelivery, queue: EndpointQueue): void {
    const atMs = clock.now()
    const term = ports.term()
    underWay += 1
    const onResend = () => rates.started(delivery.endpointId)
    const onEnd = (result: AttemptResult) => {
      if (term !== ports.term()) drop(delivery, queue)
      else if (isWithdrawn(result)) withdraw(delivery, queue)
      else end(delivery, queue, atMs, result)
    }
    const stateNow = () => (ports.areEndpointsKnown() ? queue.openState : null)
    send(delivery, queue.state, atMs, { stateNow, onResend, onEnd })
  }

  /** Ends an attempt without a result. Another replica now delivers to the endpoint, and will attempt the delivery again. */
  function drop({ deliveryId }: ClaimedDelivery, queue: EndpointQueue): void {
    queue.dropped(deliveryId)
    underWay -= 1
    if (underWay === 0) whenIdle()
  }

  /** Ends an attempt that sent nothing, because the endpoint has changed. Tries again with the new settings, unless it gets no events now. */
  function withdraw(delivery: ClaimedDelivery, queue: EndpointQueue): void {
    if (!queue.putBack(delivery)) ports.onReleased()
    underWay -= 1
    beginAll(queue)
    if (underWay === 0) whenIdle()
  }

  function end(delivery: ClaimedDelivery, queue: EndpointQueue, atMs: number, result: AttemptResult): void {
    const { deliveryId, endpointId, parcelId, sequence, plannedAtMs, attempts, spared, limited, firstFailedAtMs } = delivery
    const attempted = { deliveryId, endpointId, parcelId, sequence, plannedAtMs, attempts, spared, limited, firstFailedAtMs }
    const requestRound = ports.onEnded({ ...attempted, result, atMs, random: ports.random() })
    queue.ended(deliveryId, result)
    underWay -= 1
    const name = queue.state?.endpoint.name ?? 'removed'
    meter.deliveryAttempted({ id: endpointId, name }, result.kind, result.durationMs)
    endpointLog.attempted(name, result)
    beginAll(queue)
    requestRound(queue)
    if (underWay === 0) whenIdle()
  }

  return {
    beginNext,
    beginAll,
    /** Resolves when no attempt is running. Call it only once, after the last attempt was started. */
    ended: () =>
      new Promise<void>((resolve) => {
        whenIdle = resolve
        if (underWay === 0) resolve()
      }),
  }
}
