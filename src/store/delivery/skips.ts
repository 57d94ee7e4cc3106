import type { ClaimRef } from '../../domain/delivery/dispatch-round.ts'
import { DELIVERY_STATE } from '../codec.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

/**
 * Marks a delivery that is to be skipped. The mark is in the column `reason`, which waiting deliveries do not use for anything else. It is
 * stored because another replica may be making the attempt, and because the relay may be killed before the attempt ends.
 */
const SKIPPED = 'skipped'
export const UNENDED = [DELIVERY_STATE.behind, DELIVERY_STATE.due]

const mark = statement<{ id: number }>()((db, p) =>
  db
    .updateTable('delivery')
    .set({ reason: SKIPPED })
    .where('id', '=', p.id)
    .where('state', 'in', UNENDED)
    .where('endpoint_id', 'in', (of) => of.selectFrom('endpoint').select('endpoint.id').where('removed_at_ms', 'is', null)),
)
const one = statement<{ id: number }>()((db, p) => db.selectFrom('delivery').select('id').where('id', '=', p.id))

/** See `DeliveryTx.skipDelivery`. */
export async function skipDelivery(session: Session, id: number): Promise<'done' | 'ended' | null> {
  if ((await session.run(mark, { id })).rows > 0) return 'done'
  const [found] = await session.all(one, { id })
  return found === undefined ? null : 'ended'
}

const unmark = statement<{ id: number }>()((db, p) =>
  db.updateTable('delivery').set({ reason: null }).where('id', '=', p.id).where('state', 'in', UNENDED),
)

/** See `DeliveryTx.unskipDelivery`. */
export function unskipDelivery(session: Session, id: number): void {
  session.enqueueWrite(unmark, { id })
}

/** The first condition repeats the condition of the partial index. Otherwise the planner would not use the index. */
const marked = statement()((db) =>
  db
    .selectFrom('delivery')
    .select(['id', 'endpoint_id'])
    .where('state', '<', DELIVERY_STATE.delivered)
    .where('reason', 'is not', null)
    .where('state', 'in', UNENDED),
)

/** See `DeliveryTx.findSkipped`. */
export async function findSkipped(session: Session, endpointIds: readonly string[] | null): Promise<readonly ClaimRef[]> {
  const found = (await session.all(marked, {})).map(decodeSkipped)
  return endpointIds === null ? found : found.filter(({ endpointId }) => endpointIds.includes(endpointId))
}

export function decodeSkipped(row: { readonly id: number; readonly endpoint_id: number }): ClaimRef {
  return { deliveryId: row.id, endpointId: String(row.endpoint_id) }
}

/** Leaves out deliveries that have ended since they were found, or whose mark was removed. */
export const endSkipped = statement<{ ids: readonly number[]; nowMs: number }>()((db, p, { oneOf }) =>
  db
    .updateTable('delivery')
    .set({ state: DELIVERY_STATE.dead, settled_at_ms: p.nowMs })
    .where('id', 'in', oneOf(p.ids))
    .where('state', 'in', UNENDED)
    .where('reason', 'is not', null),
)
