import type { ActionName, ActionTarget, Actor } from '../../domain/admin/operator-action.ts'
import {
  type DeliveryCursor,
  type DeliverySelection,
  type FoundDelivery,
  type InspectedDelivery,
  type ListedDelivery,
  parseReplayTarget,
} from '../../domain/delivery/delivery-list.ts'
import { eventHeaders, furtherHeaders } from '../../domain/delivery/delivery-request.ts'
import { maskedHeaders } from '../../domain/delivery/endpoint-keys.ts'
import { OPERATOR_NAME } from '../../domain/delivery/operator-event.ts'
import { AppError } from '../../domain/errors.ts'
import { readIdentifier } from '../../domain/identifiers.ts'
import { wrongInput } from '../../domain/read-input.ts'
import type { Reads, Relay, Writes } from '../relay-part.ts'
import type { OperatorMessageOf } from './dispatching/send-delivery.ts'
import { createReplays } from './janitor.ts'

export interface ManageDeliveriesPorts
  extends Pick<Relay, 'clock'>,
    Reads<'listEndpoints' | 'listDeliveries' | 'findDelivery' | 'findParcel'>,
    Writes<'replayDeliveries' | 'cancelRemoved' | 'retryDelivery' | 'skipDelivery'> {
  /** Called when deliveries may have become due, or their order may have changed. */
  readonly review: () => void
  /** Does the same as `review`. Resolves at the end of a dispatch round that began after this call. */
  readonly reviewed: () => Promise<void>
  /** Runs work that delays pushes. Only one such piece of work runs at a time, with rests in between. */
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>
  /** Aborted when the relay stops. Running requests then stop early. */
  readonly stopping: AbortSignal
  /** Turns operator events into messages for people; absent: they are sent unchanged. */
  readonly operatorMessage?: OperatorMessageOf
}

export interface ManageDeliveriesOptions {
  /** The prefix of event ids. */
  readonly relayId: string
  readonly userAgent: string
}

/** A delivery with the id under which its receiver knows the event. */
export interface ShownDelivery extends FoundDelivery {
  readonly webhookId: string
}

/** The HTTP request of an attempt, without the signatures. */
export interface ShownRequest {
  /** The present URL of the endpoint. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Null: the body is no longer kept. */
  readonly body: string | null
}

export const DELIVERY_STATES = [
  'queued',
  'retrying',
  'held',
  'delivered',
  'dead',
  'cancelled',
] as const satisfies readonly ListedDelivery['state'][]

/** Lets operators view, replay and retry deliveries (CONTRACT, `/relay/deliveries`). Arguments are raw text or JSON values. */
export type ManageDeliveries = ReturnType<typeof createManageDeliveries>

export const ENDED = ['delivered', 'dead', 'cancelled'] as const

const RETRY_REFUSALS = {
  unknown: 'The delivery is gone.',
  ended: 'It has ended: POST /relay/deliveries/{id}/replay queues it again.',
  behind: 'It waits for an earlier delivery of its parcel, which goes first: retry that one, or the endpoint.',
  disabled: 'Its endpoint is disabled: enable it, and everything that waits is sent.',
} as const

// oxlint-disable-next-line max-lines-per-function -- one verb after the other, each short
export function createManageDeliveries(ports: ManageDeliveriesPorts, { relayId, userAgent }: ManageDeliveriesOptions) {
  const { write, reads, clock, operatorMessage } = ports
  const { findTarget, replayAll } = createReplays(ports)
  const webhookIdOf = ({ sequence }: { readonly sequence: number }) => `${relayId}_${sequence}`
  const show = (delivery: FoundDelivery): ShownDelivery => ({ ...delivery, webhookId: webhookIdOf(delivery) })

  const orderOf = (by: Actor, action: ActionName, target: ActionTarget) => ({ atMs: clock.now(), by, action, target })

  async function find(id: string) {
    const found = /^\d{1,15}$/.test(id) ? await reads.findDelivery(Number(id)) : null
    if (found === null) throw new AppError('not_found', 'There is no such delivery.')
    const delivery = show(found.delivery)
    return { delivery, attempts: found.attempts, request: showRequest(delivery, found.sent, { userAgent, operatorMessage }) }
  }

  return {
    /**
     * Lists deliveries, the newest first. Null: no restriction; `cursor` null: the first page. Throws `bad_request`, `bad_tracking_number`
     * and `not_found`.
     */
    async list({
      endpoint,
      state,
      parcel,
      from,
      to,
      cursor,
      limit,
    }: {
      readonly endpoint: number | null
      readonly state: ListedDelivery['state'] | null
      /** Raw text: an identifier. */
      readonly parcel: string | null
      /** Epoch milliseconds, inclusive. */
      readonly from: number | null
      /** Epoch milliseconds, exclusive. */
      readonly to: number | null
      readonly cursor: DeliveryCursor | null
      readonly limit: number
    }): Promise<{ readonly deliveries: readonly ShownDelivery[]; readonly next: string | null }> {
      if (from !== null && to !== null && from >= to) throw wrongInput('query', 'to', 'to must be later than from.')
      const endpointId = endpoint === null ? null : String(endpoint)
      const parcelId = parcel === null ? null : await findParcelId(reads, parcel)
      const queued = { fromMs: from ?? 0, toMs: to ?? Number.MAX_SAFE_INTEGER }
      const isTimed = from !== null || to !== null
      if (isTimed && cursor?.queuedAtMs === 0) throw wrongInput('query', 'cursor', 'cursor must be of a list with the same from and to.')
      const question = { endpointId, state, parcelId, before: cursor, limit, ...(isTimed ? { queued } : {}) }
      const { deliveries, next } = await reads.listDeliveries(question)
      return { deliveries: deliveries.map(show), next: next === null ? null : encodeCursor(next) }
    },
    find,
    /**
     * Queues an ended delivery again. If the body names another endpoint, queues its event for that endpoint instead. Throws `not_found`,
     * `bad_request` and `not_replayable`.
     */
    async replay(id: string, body: unknown, by: Actor) {
      const { delivery } = await find(id)
      const { endpointId, endpointName, deliveryId } = delivery
      const other = parseReplayTarget(body)
      if ((await findTarget(other ?? endpointId)) === null) {
        if (other !== null) throw wrongInput('body', 'to', 'to must be the id of an endpoint: no endpoint has this id.')
        const detail = `Its endpoint "${endpointName}" was removed. To send its event to another endpoint, give { "to": "ID" }.`
        throw new AppError('not_replayable', detail)
      }
      const task = { selection: { ...anyOf(endpointId), deliveryId }, to: other ?? endpointId, untilMs: clock.now() }
      const action = { ...orderOf(by, 'delivery.replayed', { kind: 'delivery', id }), detail: { endpoint: endpointName, to: task.to } }
      if ((await replayAll(task, new AbortController().signal, action)) === 0) {
        const detail = 'It has not ended, so it need not be queued again: POST /relay/deliveries/{id}/retry attempts it now.'
        throw new AppError('not_replayable', detail)
      }
    },
    /** Makes a waiting delivery due now. Throws `not_found` and `not_retryable`. */
    async retry(id: string, by: Actor): Promise<ShownDelivery> {
      const { deliveryId, endpointName } = (await find(id)).delivery
      const action = { ...orderOf(by, 'delivery.retried', { kind: 'delivery', id }), detail: { endpoint: endpointName } }
      const done = await write.retryDelivery({ deliveryId, nowMs: clock.now(), action })
      if (done !== 'done') throw new AppError('not_retryable', RETRY_REFUSALS[done])
      ports.review()
      return (await find(id)).delivery
    },
    /**
     * Gives up a waiting delivery, so that the next one of its parcel is sent. If an attempt is under way, or another replica delivers to the
     * endpoint, this may resolve before the delivery has ended. It then has the reason `skipped`. Throws `not_found` and `not_skippable`.
     */
    async skip(id: string, by: Actor): Promise<ShownDelivery> {
      const { deliveryId, endpointName } = (await find(id)).delivery
      const action = { ...orderOf(by, 'delivery.skipped', { kind: 'delivery', id }), detail: { endpoint: endpointName } }
      const done = await write.skipDelivery({ deliveryId, action })
      if (done !== 'done') throw new AppError('not_skippable', 'It has ended: there is nothing to skip.')
      // A dispatch round ends the delivery, unless an attempt is under way or another replica delivers to its endpoint.
      await ports.reviewed()
      return (await find(id)).delivery
    },
  }
}

/** Returns the id of the parcel with an identifier (raw text). Throws `bad_tracking_number` and `not_found`. */
export async function findParcelId(reads: Pick<Relay['reads'], 'findParcel'>, text: string): Promise<number> {
  const view = await reads.findParcel(readIdentifier(text))
  if (view === null) throw new AppError('not_found', 'No parcel has this identifier.')
  return view.parcelId
}

function showRequest(
  delivery: ShownDelivery,
  { url, headers, body, order, event }: InspectedDelivery['sent'],
  { userAgent, operatorMessage }: { readonly userAgent: string; readonly operatorMessage?: OperatorMessageOf | undefined },
): ShownRequest {
  const message = delivery.endpointName !== OPERATOR_NAME || body === null ? null : (operatorMessage?.(body) ?? null)
  if (message !== null) return { url, headers: message.headers, body: Buffer.from(message.body).toString() }
  const shown = {
    'user-agent': userAgent,
    ...maskedHeaders(headers),
    ...eventHeaders(delivery),
    ...furtherHeaders(order, event),
  }
  return { url, headers: shown, body: body === null ? null : Buffer.from(body).toString() }
}

function encodeCursor({ id, queuedAtMs }: DeliveryCursor): string {
  return queuedAtMs === 0 ? String(id) : `${id}.${queuedAtMs}`
}

/** Parses a cursor that a page returned as `next`; null: the text is no cursor. */
export function readDeliveryCursor(text: string): DeliveryCursor | null {
  const [, id, queuedAtMs = '0'] = /^(\d{1,15})(?:\.(\d{1,15}))?$/.exec(text) ?? []
  return id === undefined ? null : { id: Number(id), queuedAtMs: Number(queuedAtMs) }
}

/** Selects all ended deliveries of an endpoint. */
export function anyOf(endpointId: string): DeliverySelection {
  return { endpointId, states: ENDED, fromSequence: 0, fromMs: 0, deliveryId: null, sequence: null, parcelId: null }
}
