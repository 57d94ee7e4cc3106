import type { ClaimRef } from '../../domain/delivery/dispatch-round.ts'
import { DELIVERY_STATE } from '../codec.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

/**
 * The value of the column `reason` that marks a waiting delivery to be skipped. Waiting deliveries use this column for nothing else. The mark
 * is stored because another replica may be sending the delivery, and because the relay may be killed before the attempt ends.
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

/** Marks a waiting delivery as skipped, so that it is no longer claimed. `ended`: it has ended already. Null: there is no such delivery. */
export async function skipDelivery(session: Session, id: number): Promise<'done' | 'ended' | null> {
  if ((await session.run(mark, { id })).rows > 0) return 'done'
  const [found] = await session.all(one, { id })
  return found === undefined ? null : 'ended'
}

const unmark = statement<{ id: number }>()((db, p) =>
  db.updateTable('delivery').set({ reason: null }).where('id', '=', p.id).where('state', 'in', UNENDED),
)

export function unskipDelivery(session: Session, id: number): void {
  session.enqueueWrite(unmark, { id })
}

/** The first condition on the state looks superfluous, but is the condition of the partial index. Without it the index would not be used. */
const marked = statement()((db) =>
  db
    .selectFrom('delivery')
    .select(['id', 'endpoint_id'])
    .where('state', '<', DELIVERY_STATE.delivered)
    .where('reason', 'is not', null)
    .where('state', 'in', UNENDED),
)

/** See `WriteTx.findSkipped`. */
export async function findSkipped(session: Session, endpointIds: readonly string[] | null): Promise<readonly ClaimRef[]> {
  const found = (await session.all(marked, {})).map(decodeSkipped)
  return endpointIds === null ? found : found.filter(({ endpointId }) => endpointIds.includes(endpointId))
}

export function decodeSkipped(row: { readonly id: number; readonly endpoint_id: number }): ClaimRef {
  return { deliveryId: row.id, endpointId: String(row.endpoint_id) }
}

/** Ends marked deliveries. The conditions leave out deliveries that have ended since they were found, or whose mark was removed. */
export const endSkipped = statement<{ ids: readonly number[]; nowMs: number }>()((db, p, { oneOf }) =>
  db
    .updateTable('delivery')
    .set({ state: DELIVERY_STATE.dead, settled_at_ms: p.nowMs })
    .where('id', 'in', oneOf(p.ids))
    .where('state', 'in', UNENDED)
    .where('reason', 'is not', null),
)
