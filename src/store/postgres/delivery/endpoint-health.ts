import { sql } from 'kysely'
import type { EndpointHealth } from '../../../domain/delivery/endpoint-health.ts'
import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import { encodeHealth } from '../../codec.ts'
import type { Session } from '../../engine.ts'
import { rawStatement } from '../raw-statement.ts'

type Health = ReturnType<typeof encodeHealth>
type HealthParams = { readonly id: number } & { readonly [Name in keyof Health]: Health[Name] }
type SavedParams = HealthParams & { readonly before: string }

/** The health columns of a row as one value, so that one comparison can check all of them. */
const stored = sql`jsonb_build_array(succeeded_at_ms, failing_since_ms, failed_for_ms, failed_parcels, probe_at_ms, probes_failed, refused_from, refused_at_ms, round, woken_at_ms, alarmed_at_ms, pace)`

function textOf(health: EndpointHealth): string {
  const { succeededAtMs, failingSinceMs, failedForMs, failedParcels, probeAtMs, probesFailed, ...rest } = encodeHealth(health)
  const { refusedFrom, refusedAtMs, round, wokenAtMs, alarmedAtMs, pace } = rest
  const failing = [succeededAtMs, failingSinceMs, failedForMs, failedParcels, probeAtMs, probesFailed]
  return JSON.stringify([...failing, refusedFrom, refusedAtMs, round, wokenAtMs, alarmedAtMs, pace])
}

const save = rawStatement<SavedParams>()(
  (p) => sql`
    update endpoint set succeeded_at_ms = ${p.succeededAtMs}::bigint, failing_since_ms = ${p.failingSinceMs}::bigint, failed_for_ms = ${p.failedForMs}::bigint,
      failed_parcels = ${p.failedParcels}::text, probe_at_ms = ${p.probeAtMs}::bigint, probes_failed = ${p.probesFailed}::integer,
      refused_from = ${p.refusedFrom}::bigint, refused_at_ms = ${p.refusedAtMs}::bigint, woken_at_ms = ${p.wokenAtMs}::bigint, alarmed_at_ms = ${p.alarmedAtMs}::bigint, pace = ${p.pace}::text,
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
