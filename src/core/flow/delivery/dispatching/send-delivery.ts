import type { OperatorAction } from '../../../domain/admin/operator-action.ts'
import { type AttemptResult, type FailureReason, isWithdrawn } from '../../../domain/delivery/delivery.ts'
import { type DeliverySigner, furtherHeaders, type Route } from '../../../domain/delivery/delivery-request.ts'
import type { ClaimedDelivery, SettledAttempt } from '../../../domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import type { OperatorMessage } from '../../../domain/delivery/operator-event.ts'
import { isStoreUnavailable } from '../../../domain/errors.ts'
import type { DeliverySender } from '../../ports.ts'
import type { Part, Relay, Writes } from '../../relay-part.ts'
import type { EndpointQueue, EndpointRates } from './endpoint-queues.ts'

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
  return ({ sequence, previousSequence, body, order, event }, state, nowMs, { stateNow, onResend, onEnd }) => {
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
        const own = signer.headers(content, nowMs, exchanged)
        const headers = order === null && event === undefined ? own : { ...own, ...furtherHeaders(order, event) }
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

interface DeliveryAttemptsPorts extends Pick<Relay, 'clock'>, Part<'meter', 'deliveryAttempted'> {
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

/** Logs each change of an endpoint's state. Logs the failed attempts of an endpoint at most once a minute. */
export type EndpointLog = ReturnType<typeof createEndpointLog>

type Standing = 'active' | 'failing' | 'disabled' | 'gone' | 'given up' | 'unnamed'

const EVERY_MS = 60_000

const MESSAGES: Readonly<Record<Exclude<Standing, 'active'>, string>> = {
  failing: 'an endpoint is failing: it is sent one delivery at a time until one succeeds',
  disabled: 'an endpoint is disabled; everything for it waits',
  gone: 'an endpoint answered 410 and is disabled; everything for it waits',
  'given up': 'an endpoint failed for 120 h and is disabled; everything for it waits',
  unnamed:
    'no config names an endpoint any more, so everything for it waits; unless a config names it again, it is removed after delivery.removeAfter',
}

/** The list of endpoints before the first update. */
const NONE: readonly EndpointState[] = []

const STILL_FAILING = 'an endpoint has been failing since before this start: it is sent one delivery at a time until one succeeds'

export function createEndpointLog({ log, clock }: Pick<Relay, 'log' | 'clock'>) {
  const standings = new Map<string, Standing>()
  const failures = new Map<string, { count: number; loggedAtMs: number }>()
  let known = NONE

  return {
    /** Logs which endpoints have changed their state. */
    update(states: readonly EndpointState[]): void {
      if (states === known) return
      const isFirst = known === NONE
      known = states
      for (const state of states) {
        const { id, name } = state.endpoint
        const before = standings.get(id) ?? 'active'
        const now = standingOf(state)
        if (now === before) continue
        standings.set(id, now)
        if (now === 'active') log.info({ endpoint: name, before }, 'an endpoint is sent events again, including all that waited')
        else if (isFirst && now === 'failing') log.warn({ endpoint: name }, STILL_FAILING)
        else log.warn({ endpoint: name, before }, MESSAGES[now])
      }
      const ids = new Set(states.map(({ endpoint }) => endpoint.id))
      const names = new Set(states.map(({ endpoint }) => endpoint.name))
      for (const id of standings.keys()) if (!ids.has(id)) standings.delete(id)
      for (const name of failures.keys()) if (!names.has(name)) failures.delete(name)
    },
    /** Counts a failed attempt for the endpoint with this name, and logs the count at most once a minute. */
    attempted(endpoint: string, result: AttemptResult): void {
      if (result.kind === 'accepted' || (result.kind === 'failed' && result.reason === 'interrupted')) return
      const nowMs = clock.monotonic()
      const failed = failures.get(endpoint) ?? { count: 0, loggedAtMs: Number.NEGATIVE_INFINITY }
      failures.set(endpoint, failed)
      failed.count += 1
      if (nowMs - failed.loggedAtMs < EVERY_MS) return
      log.warn({ endpoint, count: failed.count, last: causeOf(result) }, 'attempts to deliver to an endpoint failed')
      failed.count = 0
      failed.loggedAtMs = nowMs
    },
  }
}

function standingOf({ disabled, health }: EndpointState): Standing {
  if (disabled === 'operator') return 'disabled'
  if (disabled === 'gone') return 'gone'
  if (disabled === 'failing') return 'given up'
  if (disabled === 'unnamed') return 'unnamed'
  return health.probing === null ? 'active' : 'failing'
}

function causeOf(result: Exclude<AttemptResult, { readonly kind: 'accepted' }>): string {
  return result.kind === 'rejected' ? `status ${result.status}` : result.reason
}
