import { sql } from 'kysely'
import type { EndpointHealth } from '../../../core/domain/delivery/endpoint-health.ts'
import type { EndpointState } from '../../../core/domain/delivery/endpoint-state.ts'
import { encodeHealth } from '../../../core/store/codec.ts'
import type { Session } from '../../../core/store/engine.ts'
import { rawStatement } from '../raw-statement.ts'

type SavedHealth = ReturnType<typeof encodeHealth> & { readonly id: number; readonly before: string }

/** The health columns of a row as one value, in the order of `encodeHealth`, so that one comparison can check all of them. */
const stored = sql`jsonb_build_array(succeeded_at_ms, failing_since_ms, failed_for_ms, failed_parcels, probe_at_ms, probes_failed, refused_from, refused_at_ms, round, woken_at_ms, alarmed_at_ms, pace)`

function textOf(health: EndpointHealth): string {
  return JSON.stringify(Object.values(encodeHealth(health)))
}

const save = rawStatement<SavedHealth>()(
  (p) => sql`
    update endpoint set succeeded_at_ms = ${p.succeeded_at_ms}::bigint, failing_since_ms = ${p.failing_since_ms}::bigint, failed_for_ms = ${p.failed_for_ms}::bigint,
      failed_parcels = ${p.failed_parcels}::text, probe_at_ms = ${p.probe_at_ms}::bigint, probes_failed = ${p.probes_failed}::integer,
      refused_from = ${p.refused_from}::bigint, refused_at_ms = ${p.refused_at_ms}::bigint, woken_at_ms = ${p.woken_at_ms}::bigint, alarmed_at_ms = ${p.alarmed_at_ms}::bigint, pace = ${p.pace}::text,
      round = ${p.round}::bigint / (case when ${stored} = ${p.before}::jsonb then 1 else 0 end)
    where id = ${p.id}::bigint`,
)
const hold = rawStatement<{ id: number; before: string; queuedTo: number | null }>()(
  (p) => sql`
    select 1 / (case when ${stored} = ${p.before}::jsonb and queued_to is not distinct from ${p.queuedTo}::bigint then 1 else 0 end)
    from endpoint where id = ${p.id}::bigint for no key update`,
)

/**
 * Saves a health that was computed from `before`. Fails as a conflict (by a division by zero) if another transaction, such as an operator's
 * retry, has changed the health since.
 */
export function saveHealthAfter(session: Session, endpointId: string, health: EndpointHealth, before: EndpointHealth): void {
  session.enqueueWrite(save, { id: Number(endpointId), ...encodeHealth(health), before: textOf(before) })
}

/**
 * Fails as a conflict if an endpoint's health or `queuedTo` has changed. The version of the endpoints does not show such a change. If neither
 * has changed, locks the row, so that both stay the same until the transaction ends.
 */
export function endpointStays(session: Session, { endpoint, health, queuedTo }: EndpointState): void {
  session.enqueueWrite(hold, { id: Number(endpoint.id), before: textOf(health), queuedTo })
}
