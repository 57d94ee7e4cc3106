import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import type { WriteTx } from '../../../flow/write-store.ts'
import { listEndpoints, saveEndpoint, saveHealth } from '../../delivery/endpoints.ts'
import type { Endpoints } from '../../write-verbs.ts'
import { endpointsChange, endpointsStay, readEndpointsVersion } from '../counter.ts'
import type { PostgresSession } from '../postgres-session.ts'
import { healthStays, saveHealthAfter } from './endpoint-health.ts'

export interface TransactionEndpoints extends Endpoints {
  /** The health of an endpoint as it was read, to be compared when it is first saved; null: it was not read, or is this transaction's own. */
  takeHealth(endpointId: string): EndpointState['health'] | null
}

/** What is saved of an endpoint was computed from what was read of it: if others have changed endpoints in between, the transaction is begun again. */
export function createTransactionEndpoints(session: PostgresSession): TransactionEndpoints {
  let listed: Promise<readonly EndpointState[]> | null = null
  const read = new Map<string, EndpointState['health']>()
  const written = new Set<string>()
  let known: number | null = null
  let isChanged = false
  const list = async () => {
    const version = known === null ? readEndpointsVersion(session) : known
    const [current, endpoints] = await Promise.all([version, listEndpoints(session)])
    known = current
    for (const { endpoint, health } of endpoints) read.set(endpoint.id, health)
    return endpoints
  }
  return {
    list() {
      listed ??= list()
      return listed
    },
    change() {
      listed = null
      if (!isChanged) endpointsChange(session, known)
      isChanged = true
    },
    takeHealth(endpointId) {
      const health = written.has(endpointId) ? null : (read.get(endpointId) ?? null)
      written.add(endpointId)
      return health
    },
    note() {
      listed = null
      if (!isChanged && known !== null) endpointsStay(session, known)
    },
  }
}

interface EndpointParts {
  readonly session: PostgresSession
  readonly endpoints: TransactionEndpoints
}

/** What is written down of an endpoint here and at another replica, such as an attempt and an operator's order, is done one after the other. */
export function endpointVerbs({ session, endpoints }: EndpointParts) {
  return {
    saveHealth(endpointId, health) {
      const before = endpoints.takeHealth(endpointId)
      endpoints.note(endpointId, health)
      if (before === null) saveHealth(session, endpointId, health)
      else saveHealthAfter(session, endpointId, health, before)
    },
    async saveEndpoint(state) {
      const before = endpoints.takeHealth(state.endpoint.id)
      if (before !== null) healthStays(session, state.endpoint.id, before)
      endpoints.change()
      return await saveEndpoint(session, state)
    },
  } satisfies Partial<WriteTx>
}
