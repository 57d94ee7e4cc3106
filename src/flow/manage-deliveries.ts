import { AppError } from '../domain/errors.ts'
import { parseIdentifier } from '../domain/identifiers.ts'
import { parseReplayOrder, parseReplayTarget } from '../domain/replay-order.ts'
import type { Clock, DeliverySelection, ListedDelivery, MadeAttempt, ReadSide, WriteSide } from './ports.ts'

export interface ManageDeliveriesPorts {
  readonly write: Pick<WriteSide, 'replayDeliveries'>
  readonly reads: Pick<ReadSide, 'listEndpoints' | 'listDeliveries' | 'findDelivery' | 'countReplayable' | 'findParcel'>
  readonly clock: Clock
  /** Something may have become deliverable, and what waits may have another place in the order of its parcel. */
  readonly review: () => void
}

export interface ManageDeliveriesOptions {
  /** What the ids of events begin with. */
  readonly relayId: string
}

/** A delivery, and the id its receiver knows its event by. */
export interface ShownDelivery extends ListedDelivery {
  readonly webhookId: string
}

export const DELIVERY_STATES = [
  'queued',
  'retrying',
  'held',
  'delivered',
  'dead',
  'cancelled',
] as const satisfies readonly ListedDelivery['state'][]

/** What operators see and do of deliveries (CONTRACT, `/relay/deliveries`). Everything comes as raw text or JSON values. */
export interface ManageDeliveries {
  /** The newest first. Null: of any endpoint, in any state, from the newest on. */
  list(query: {
    readonly endpoint: number | null
    readonly state: ListedDelivery['state'] | null
    readonly cursor: number | null
    readonly limit: number
  }): Promise<{ readonly deliveries: readonly ShownDelivery[]; readonly next: string | null }>
  find(id: string): Promise<{ readonly delivery: ShownDelivery; readonly attempts: readonly MadeAttempt[] }>
  /** Queues one that has ended again, or its event for the endpoint that the body names. Throws `not_found`, `bad_request` and `not_replayable`. */
  replay(id: string, body: unknown): Promise<void>
  /** Queues many of one endpoint again, or those of another for it, or (`dryRun`) says how many it would be. */
  replayMany(endpointId: string, body: unknown): Promise<{ readonly count: number; readonly dryRun: boolean }>
}

/** A transaction's worth: whoever pushes meanwhile waits no longer than for a batch. */
const REPLAY_BATCH = 500
const ENDED = ['delivered', 'dead', 'cancelled'] as const

export function createManageDeliveries(ports: ManageDeliveriesPorts, { relayId }: ManageDeliveriesOptions): ManageDeliveries {
  const { write, reads, clock } = ports
  const show = (delivery: ListedDelivery): ShownDelivery => ({ ...delivery, webhookId: `${relayId}_${delivery.sequence}` })

  async function find(id: string) {
    const found = /^\d{1,15}$/.test(id) ? await reads.findDelivery(Number(id)) : null
    if (found === null) throw new AppError('not_found', 'There is no such delivery.')
    return { delivery: show(found.delivery), attempts: found.attempts }
  }

  /** Whether something can be queued for an endpoint; false: it was removed, or never was. */
  async function isReady(endpointId: string): Promise<boolean> {
    const state = (await reads.listEndpoints()).find(({ endpoint, origin }) => endpoint.id === endpointId && origin !== 'operator')
    if (state === undefined) return false
    if (state.queuedTo === null) return true
    throw new AppError('not_replayable', 'The endpoint is still being queued what is older: replay when it has caught up.')
  }

  async function replayAll(selection: DeliverySelection, to = selection.endpointId): Promise<number> {
    const nowMs = clock.now()
    let count = 0
    let after: number | null = 0
    while (after !== null) {
      const done: Awaited<ReturnType<WriteSide['replayDeliveries']>> = await write.replayDeliveries({
        selection,
        to,
        after,
        limit: REPLAY_BATCH,
        nowMs,
      })
      count += done.count
      after = done.last
    }
    ports.review()
    return count
  }

  return {
    async list({ endpoint, state, cursor, limit }) {
      const endpointId = endpoint === null ? null : String(endpoint)
      const { deliveries, next } = await reads.listDeliveries({ endpointId, state, before: cursor, limit })
      return { deliveries: deliveries.map(show), next: next === null ? null : String(next) }
    },
    find,
    async replay(id, body) {
      const { delivery } = await find(id)
      const { endpointId, endpointName, deliveryId } = delivery
      const other = parseReplayTarget(body)
      if (!(await isReady(other ?? endpointId))) {
        if (other !== null) throw new AppError('bad_request', 'to: there is no such endpoint.')
        const detail = `Its endpoint "${endpointName}" was removed: say { "to": "ID" } to send its event to another.`
        throw new AppError('not_replayable', detail)
      }
      if ((await replayAll({ ...anyOf(endpointId), deliveryId }, other ?? endpointId)) === 0) {
        throw new AppError('not_replayable', 'It has not ended: it is attempted anyway.')
      }
    },
    async replayMany(endpointId, body) {
      const { parcel, dryRun, of, ...order } = parseReplayOrder(body)
      if (!(await isReady(endpointId))) throw new AppError('not_found', 'There is no such endpoint.')
      const selection = { ...anyOf(of ?? endpointId), ...order, parcelId: parcel === null ? null : await parcelOf(parcel) }
      return { count: dryRun ? await reads.countReplayable(selection) : await replayAll(selection, endpointId), dryRun }
    },
  }

  async function parcelOf(text: string): Promise<number> {
    const identifier = parseIdentifier(text)
    const view = identifier === null ? null : await reads.findParcel(identifier)
    if (view === null) throw new AppError('not_found', 'No parcel has this identifier.')
    return view.parcelId
  }
}

function anyOf(endpointId: string): DeliverySelection {
  return { endpointId, states: ENDED, fromSequence: 0, fromMs: 0, deliveryId: null, sequence: null, parcelId: null }
}
