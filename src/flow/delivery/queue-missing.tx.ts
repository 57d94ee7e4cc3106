import type { Retention } from '../../domain/admin/retention.ts'
import type { MissingReplay, ReplayBatch, ReplayedBatch } from '../../domain/delivery/delivery-list.ts'
import { encodeEvent } from '../../domain/delivery/delivery-request.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import type { MissingEvent } from '../../domain/delivery/missing.ts'
import type { WriteTx } from '../write-store.ts'
import { findMissing } from './find-missing.ts'

export type QueueMissingTx = Pick<WriteTx, 'readBackfill' | 'ageMarks' | 'queueMissing'>

/** Queues a batch of the events that an endpoint never received. */
export async function queueMissing(
  tx: QueueMissingTx,
  to: EndpointState,
  { missing, after, limit, nowMs }: MissingReplay & ReplayBatch,
  retention: Retention,
): Promise<ReplayedBatch> {
  const { events, next } = await findMissing(tx, to, { selection: missing, after: after?.at ?? null, limit, retention, nowMs })
  const count = await tx.queueMissing({ endpointId: to.endpoint.id, events: events.flatMap(queued), nowMs })
  return { count, next: next === null ? null : { at: next, id: 0 } }
}

/** Missing events come only from polls. No push has contained their body, so the relay composes it. */
function queued({ parcelId, sequence, entry, payload }: MissingEvent) {
  return payload.kind === 'composed' ? [{ parcelId, sequence, body: encodeEvent({ entry, ...payload }) }] : []
}
