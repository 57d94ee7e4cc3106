import { sql } from 'kysely'
import type { EndpointHealth } from '../../../core/domain/delivery/endpoint-health.ts'
import type { EndpointState } from '../../../core/domain/delivery/endpoint-state.ts'
import type { Subscriber } from '../../../core/domain/history/snapshot.ts'
import { decodeEndpoint, encodeHealth, isReadableEndpoint } from '../../../core/store/codec.ts'
import { encodeEndpoint, listEndpoints, saveEndpoint, saveHealth } from '../../../core/store/delivery/endpoints.ts'
import type { Session } from '../../../core/store/engine.ts'
import type { Tables } from '../../../core/store/schema.ts'
import type { Endpoints, WriteTx } from '../../../core/store/write-store.ts'
import { endpointsStay, readEndpointsVersion, type Standing, standingColumns, type TransactionEnd } from '../counter.ts'
import { PROVISIONAL, real } from '../history/provisional.ts'
import type { PostgresSession } from '../postgres.ts'
import { rawStatement } from '../postgres-dialect.ts'

export interface TransactionEndpoints extends Endpoints {
  /** Returns the endpoint as this transaction read it. Null: the transaction has not read the endpoint, or has called this for it before. */
  takeBefore(endpointId: string): EndpointState | null
  /** Whether the endpoint is still as it was read, so that it need not be saved. */
  isSame(state: EndpointState): boolean
  /** Makes this transaction begin again if another transaction has changed endpoints since this one read them. */
  stay(): void
}

export function createTransactionEndpoints(session: PostgresSession, end: TransactionEnd): TransactionEndpoints {
  let listed: Promise<readonly EndpointState[]> | null = null
  const read = new Map<string, EndpointState>()
  const written = new Set<string>()
  let known: number | null = null
  let isChanged = false
  const list = async () => {
    const version = known === null ? readEndpointsVersion(session) : known
    const [current, endpoints] = await Promise.all([version, listEndpoints(session)])
    known = current
    for (const state of endpoints) read.set(state.endpoint.id, state)
    return endpoints
  }
  const unwritten = (endpointId: string) => (written.has(endpointId) ? null : (read.get(endpointId) ?? null))
  const stay = () => {
    if (!isChanged && known !== null) endpointsStay(session, known)
  }
  return {
    list() {
      listed ??= list()
      return listed
    },
    change() {
      listed = null
      end.changeEndpoints(known)
      isChanged = true
    },
    takeBefore(endpointId) {
      const before = unwritten(endpointId)
      written.add(endpointId)
      return before
    },
    isSame(state) {
      const before = unwritten(state.endpoint.id)
      return before !== null && JSON.stringify(encodeEndpoint(before)) === JSON.stringify(encodeEndpoint(state))
    },
    stay,
    note() {
      listed = null
      stay()
    },
  }
}

interface EndpointParts {
  readonly session: PostgresSession
  readonly endpoints: TransactionEndpoints
  readonly end: TransactionEnd
}

const number = rawStatement<{ id: number }>()(
  (p) => sql`
    update endpoint set first_sequence = ${real(sql.ref('first_sequence'))}, backfill_from = ${real(sql.ref('backfill_from'))},
      backfill_to = ${real(sql.ref('backfill_to'))}
    where id = ${p.id}::bigint`,
)

/** Two replicas may change the same endpoint at the same time: one after an attempt, the other for an operator. */
export function endpointVerbs({ session, endpoints, end }: EndpointParts) {
  return {
    saveHealth(endpointId, health) {
      const before = endpoints.takeBefore(endpointId)
      endpoints.note(endpointId, health)
      if (before === null) saveHealth(session, endpointId, health)
      else saveHealthAfter(session, endpointId, health, before.health)
    },
    async saveEndpoint(state) {
      // At each start a relay saves the endpoints of its config, mostly unchanged. A needless save would make all open batches begin again.
      if (endpoints.isSame(state)) return state.endpoint.id
      const before = endpoints.takeBefore(state.endpoint.id)
      if (before !== null) endpointStays(session, before)
      endpoints.change()
      const id = await saveEndpoint(session, state)
      if (isProvisional(state)) end.whenNumbered(() => session.enqueueWrite(number, { id: Number(id) }))
      return id
    },
  } satisfies Partial<WriteTx>
}

function isProvisional({ firstSequence, backfilled }: EndpointState): boolean {
  return Math.max(firstSequence, backfilled?.from ?? 0, backfilled?.to ?? 0) > PROVISIONAL
}

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
function saveHealthAfter(session: Session, endpointId: string, health: EndpointHealth, before: EndpointHealth): void {
  session.enqueueWrite(save, { id: Number(endpointId), ...encodeHealth(health), before: textOf(before) })
}

/**
 * Fails as a conflict if an endpoint's health or `queuedTo` has changed. The version of the endpoints does not show such a change. If neither
 * has changed, locks the row, so that both stay the same until the transaction ends.
 */
function endpointStays(session: Session, { endpoint, health, queuedTo }: EndpointState): void {
  session.enqueueWrite(hold, { id: Number(endpoint.id), before: textOf(health), queuedTo })
}

/** The endpoints that decide which deliveries a batch queues, and their version. `standing`: the state of the server at the last check. */
export interface Subscribers {
  readonly standing: Standing
  readonly version: number
  readonly endpoints: readonly Subscriber[]
}

type EndpointRow = { readonly [Column in keyof Parameters<typeof decodeEndpoint>[0]]: Parameters<typeof decodeEndpoint>[0][Column] }

const sinceVersion = rawStatement<{ known: number }>()(
  (p) => sql<EndpointRow & Pick<Tables['counter'], 'version'> & Standing>`
    select counter.version, ${standingColumns}, endpoint.* from counter
    left join endpoint on endpoint.removed_at_ms is null and counter.version <> ${p.known}::bigint
    where counter.name = 'sequence' order by endpoint.id`,
)

/** Reads the version of the endpoints, and the endpoints themselves only if they have changed since `known`. */
export async function readSubscribers(session: Session, known: Subscribers | null): Promise<Subscribers> {
  const rows = await session.all(sinceVersion, { known: known?.version ?? -1 })
  const [first] = rows
  if (first === undefined) throw new Error('the counter of the store is gone')
  const { version, server, sequence } = first
  const standing = { server, sequence }
  if (known !== null && version === known.version) return { ...known, standing }
  return { version, standing, endpoints: rows.flatMap((row) => (row.id === null || !isReadableEndpoint(row) ? [] : [decodeEndpoint(row)])) }
}
