import { sql } from 'kysely'
import type { ClaimRef } from '../../../core/domain/delivery/dispatch-round.ts'
import { decodeSkipped, findSkipped } from '../../../core/store/delivery/settlements.ts'
import type { Session } from '../../../core/store/engine.ts'
import { rawStatement } from '../raw-statement.ts'

const marked = rawStatement<{ endpointIds: readonly number[] }>()(
  (p) => sql<{ id: number; endpoint_id: number }>`
    select id, endpoint_id from delivery where state < 2 and reason is not null and state in (0, 1)
      and (endpoint_id = any(${p.endpointIds}::bigint[]) or not exists (select 1 from role where name = 'dispatcher/' || endpoint_id))`,
)

/**
 * See `WriteTx.findSkipped`. Also finds deliveries to endpoints to which no replica sends now, because no other replica would find them.
 * This is safe: none of those deliveries is being sent, and no replica claims a skipped delivery later.
 */
export async function findSkippedOver(session: Session, endpointIds: readonly string[] | null): Promise<readonly ClaimRef[]> {
  if (endpointIds === null) return await findSkipped(session, null)
  return (await session.all(marked, { endpointIds: endpointIds.map(Number) })).map(decodeSkipped)
}
