import { sql } from 'kysely'
import type { EndpointState } from '../../../core/domain/delivery/endpoint-state.ts'
import { encodeEndpoint, listEndpoints, saveEndpoint, saveHealth } from '../../../core/store/delivery/endpoints.ts'
import type { Endpoints, WriteTx } from '../../../core/store/write-store.ts'
import { endpointsStay, readEndpointsVersion } from '../counter.ts'
import { PROVISIONAL, real } from '../history/provisional.ts'
import type { PostgresSession } from '../postgres-session.ts'
import { rawStatement } from '../raw-statement.ts'
import type { TransactionEnd } from '../transaction-end.ts'
import { endpointStays, saveHealthAfter } from './endpoint-health.ts'

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
