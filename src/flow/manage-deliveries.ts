import { AppError } from '../domain/errors.ts'
import { parseIdentifier } from '../domain/identifiers.ts'
import { parseReplayOrder } from '../domain/replay-order.ts'
import type { Clock, DeliverySelection, ListedDelivery, MadeAttempt, ReadSide, WriteSide } from './ports.ts'

export interface ManageDeliveriesPorts {
  readonly write: Pick<WriteSide, 'replayDeliveries'>
  readonly reads: Pick<ReadSide, 'listEndpoints' | 'listDeliveries' | 'findDelivery' | 'countReplayable' | 'findParcel'>
  readonly clock: Clock
  /** Something may have become deliverable. */
  readonly wake: () => void
}

export interface ManageDeliveriesOptions {
  /** What the ids of events begin with. */
  readonly relayId: string
}

/** A delivery, and the id its receiver knows its event by. */
export interface ShownDelivery extends ListedDelivery {
  readonly webhookId: string
}

/** What operators see and do of deliveries (CONTRACT, `/relay/deliveries`). Everything comes as raw text or JSON values. */
export interface ManageDeliveries {
  /** The newest first. Throws `bad_request`. */
  list(query: {
    readonly endpoint?: string | undefined
    readonly state?: string | undefined
    readonly cursor?: string | undefined
  }): Promise<{ readonly deliveries: readonly ShownDelivery[]; readonly next: string | null }>
  find(id: string): Promise<{ readonly delivery: ShownDelivery; readonly attempts: readonly MadeAttempt[] }>
  /** Queues one that has ended again. Throws `not_found` and `not_replayable`. */
  replay(id: string): Promise<void>
  /** Queues many of one endpoint again, or (`dryRun`) says how many it would be. */
  replayMany(endpointId: string, body: unknown): Promise<{ readonly count: number; readonly dryRun: boolean }>
}

const PAGE = 100
/** A transaction's worth: whoever pushes meanwhile waits no longer than for a batch. */
const REPLAY_BATCH = 500
const STATES: readonly ListedDelivery['state'][] = ['queued', 'retrying', 'held', 'delivered', 'dead', 'cancelled']
const ENDED = ['delivered', 'dead', 'cancelled'] as const

export function createManageDeliveries(ports: ManageDeliveriesPorts, { relayId }: ManageDeliveriesOptions): ManageDeliveries {
  const { write, reads, clock } = ports
  const show = (delivery: ListedDelivery): ShownDelivery => ({ ...delivery, webhookId: `${relayId}_${delivery.sequence}` })

  async function find(id: string) {
    const found = /^\d{1,15}$/.test(id) ? await reads.findDelivery(Number(id)) : null
    if (found === null) throw new AppError('not_found', 'There is no such delivery.')
    return { delivery: show(found.delivery), attempts: found.attempts }
  }

  const isStanding = async (endpointId: string) => (await reads.listEndpoints()).some(({ endpoint }) => endpoint.id === endpointId)

  async function replayAll(selection: DeliverySelection): Promise<number> {
    const nowMs = clock.now()
    let count = 0
    let after: number | null = 0
    while (after !== null) {
      const done: Awaited<ReturnType<WriteSide['replayDeliveries']>> = await write.replayDeliveries({
        selection,
        after,
        limit: REPLAY_BATCH,
        nowMs,
      })
      count += done.count
      after = done.last
    }
    ports.wake()
    return count
  }

  return {
    async list({ endpoint, state, cursor }) {
      const wanted = STATES.find((name) => name === state) ?? null
      if (state !== undefined && wanted === null) throw new AppError('bad_request', `state: one of ${STATES.join(', ')}.`)
      for (const [name, text] of Object.entries({ endpoint, cursor })) {
        if (text !== undefined && !/^\d{1,15}$/.test(text)) throw new AppError('bad_request', `${name}: one that the relay gave.`)
      }
      const before = cursor === undefined ? null : Number(cursor)
      const { deliveries, next } = await reads.listDeliveries({ endpointId: endpoint ?? null, state: wanted, before, limit: PAGE })
      return { deliveries: deliveries.map(show), next: next === null ? null : String(next) }
    },
    find,
    async replay(id) {
      const { delivery } = await find(id)
      if (!(await isStanding(delivery.endpointId))) throw new AppError('not_replayable', 'Its endpoint was removed.')
      const selection = { ...anyOf(delivery.endpointId), deliveryId: delivery.deliveryId }
      if ((await replayAll(selection)) === 0) throw new AppError('not_replayable', 'It has not ended: it is attempted anyway.')
    },
    async replayMany(endpointId, body) {
      const { parcel, dryRun, ...order } = parseReplayOrder(body)
      if (!(await isStanding(endpointId))) throw new AppError('not_found', 'There is no such endpoint.')
      const selection = { ...anyOf(endpointId), ...order, parcelId: parcel === null ? null : await parcelOf(parcel) }
      return { count: dryRun ? await reads.countReplayable(selection) : await replayAll(selection), dryRun }
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
