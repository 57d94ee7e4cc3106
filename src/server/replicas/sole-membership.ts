import { dispatcherOf, type Replica } from '../../core/domain/admin/replica.ts'
import type { Reads } from '../../core/flow/relay.ts'
import type { Membership } from './membership.ts'
import type { ReplicaConfig } from './replica-table.rows.ts'

export interface SoleMembershipPorts extends Reads<'listEndpoints'> {
  readonly clock: { now(): number }
}

/** The membership of a relay that does not share its store: it holds every role. */
export function createSoleMembership(
  { reads, clock }: SoleMembershipPorts,
  { name, version }: { readonly name: string; readonly version: string },
  first: ReplicaConfig,
): Membership {
  let config = first
  const never = new AbortController().signal
  const startedAtMs = clock.now()
  return {
    id: () => 1,
    holds: () => true,
    endpoints: () => null,
    delivers: () => true,
    term: () => 0,
    signal: () => never,
    count: () => 1,
    async list(): Promise<readonly Replica[]> {
      const endpoints = await reads.listEndpoints()
      const { configFingerprint, atRestKeys } = config
      const roles = ['poller', 'janitor', ...endpoints.map(({ endpoint }) => dispatcherOf(endpoint.id))] as const
      return [{ id: 1, name, version, configFingerprint, atRestKeys, startedAtMs, lastSeenAtMs: clock.now(), roles, concerns: [] }]
    },
    async configure(next) {
      config = next
    },
    tell: () => undefined,
  }
}
