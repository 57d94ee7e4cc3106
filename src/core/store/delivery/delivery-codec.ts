import type { Selectable } from 'kysely'
import type { AttemptRecord, ListedDelivery } from '../../domain/delivery/delivery-list.ts'
import { DELIVERY_STATE } from '../codec.ts'
import type { Tables } from '../tables.ts'

export type DeliveryRow = Selectable<Tables['delivery']> &
  Pick<Selectable<Tables['endpoint']>, 'disabled' | 'removed_at_ms' | 'probe_at_ms' | 'woken_at_ms'> & {
    readonly endpoint_name: string
    readonly endpoint_round: number
  }

export function decodeDelivery(row: DeliveryRow): ListedDelivery {
  return {
    deliveryId: row.id,
    endpointId: String(row.endpoint_id),
    endpointName: row.endpoint_name,
    parcelId: row.parcel_id,
    sequence: row.sequence,
    previousSequence: row.previous_sequence,
    state: stateOf(row),
    // The column holds only what `saveSettlements`, `skipDelivery` and `cancelRemoved` wrote.
    reason: isCancelledUnwritten(row) ? 'endpoint_removed' : (row.reason as ListedDelivery['reason']),
    attempts: row.attempts,
    queuedAtMs: row.queued_at_ms,
    nextAttemptAtMs: nextAttemptAtMs(row),
    settledAtMs: isCancelledUnwritten(row) ? row.removed_at_ms : row.settled_at_ms,
  }
}

/** Whether a delivery is cancelled because its endpoint was removed, although its row still says that it waits. */
function isCancelledUnwritten(row: DeliveryRow): boolean {
  return row.removed_at_ms !== null && row.state < DELIVERY_STATE.delivered
}

/**
 * Null: the delivery waits for something else than a time, or it is to be skipped (its row has a reason). A failing endpoint gets nothing before
 * its next probe. An endpoint that is woken begins a new round. Deliveries of earlier rounds are then due at once.
 */
function nextAttemptAtMs(row: DeliveryRow): number | null {
  if (row.state !== DELIVERY_STATE.due || row.reason !== null || row.removed_at_ms !== null || row.disabled !== null) return null
  if (row.probe_at_ms !== null) return row.probe_at_ms
  if (row.round === row.endpoint_round) return row.next_attempt_at_ms
  return Math.min(row.next_attempt_at_ms, Math.max(row.woken_at_ms, row.queued_at_ms))
}

function stateOf(row: DeliveryRow): ListedDelivery['state'] {
  const { state, disabled, attempts } = row
  if (isCancelledUnwritten(row)) return 'cancelled'
  if (state === DELIVERY_STATE.delivered) return 'delivered'
  if (state === DELIVERY_STATE.dead) return 'dead'
  if (state === DELIVERY_STATE.cancelled) return 'cancelled'
  if (disabled !== null) return 'held'
  return attempts > 0 ? 'retrying' : 'queued'
}

export function decodeAttempt(row: Selectable<Tables['attempt']>): AttemptRecord {
  return {
    atMs: row.at_ms,
    durationMs: row.duration_ms,
    status: row.status,
    reason: row.reason,
    answerStart: row.answer ?? new Uint8Array(),
    address: row.address,
  }
}

/** Reads the accepted attempt from the row of a delivery. A replay moves that attempt to the table `attempt`. Null: the row has none. */
export function acceptedAttempt(row: DeliveryRow): AttemptRecord | null {
  const { accepted_at_ms: atMs, accepted_duration_ms: durationMs, accepted_status: status, accepted_address: address } = row
  return atMs === null ? null : { atMs, durationMs: durationMs ?? 0, status, reason: null, answerStart: new Uint8Array(), address }
}
