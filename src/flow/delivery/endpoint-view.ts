import type { KeyFingerprints } from '../../domain/delivery/delivery-request.ts'
import type { EndpointBacklog, EndpointState } from '../../domain/delivery/endpoint-state.ts'
import { FAILURES_COUNT_FOR_MS, type FailureGroup } from '../../domain/delivery/failure-group.ts'
import type { ReadSide } from '../read-side.ts'

/** An endpoint as operators see it. */
export interface EndpointView extends EndpointState {
  readonly backlog: EndpointBacklog
  /** The last failure, counted together with equal failures; null: there was none. */
  readonly lastFailure: FailureGroup | null
}

/** An endpoint with its failures. Equal failures are counted together, and the last comes first. */
export interface InspectedEndpoint extends EndpointView {
  readonly failures: readonly FailureGroup[]
  /** Null: the relay cannot open its key, or does not know it. */
  readonly fingerprints: KeyFingerprints | null
}

/** Adds what operators see to endpoints. The cost grows with the number of waiting and dead deliveries, see `countBacklog`. */
export async function viewEndpoints(
  reads: Pick<ReadSide, 'countBacklog' | 'lastFailures'>,
  states: readonly EndpointState[],
): Promise<readonly EndpointView[]> {
  const failures = await reads.lastFailures(states.map(({ endpoint }) => endpoint.id))
  const views: EndpointView[] = []
  for (const state of states) {
    const { id } = state.endpoint
    views.push({ ...state, backlog: await reads.countBacklog(id), lastFailure: failures.get(id) ?? null })
  }
  return views
}

export async function viewEndpoint(reads: Pick<ReadSide, 'countBacklog' | 'lastFailures'>, state: EndpointState): Promise<EndpointView> {
  const [view] = await viewEndpoints(reads, [state])
  return view ?? { ...state, backlog: { waiting: 0, oldestAtMs: null, dead: 0 }, lastFailure: null }
}

export async function inspectEndpoint(
  reads: Pick<ReadSide, 'countBacklog' | 'lastFailures' | 'listFailures'>,
  state: EndpointState,
  { nowMs, fingerprints }: { readonly nowMs: number; readonly fingerprints: KeyFingerprints | null },
): Promise<InspectedEndpoint> {
  const failures = await reads.listFailures({ endpointId: state.endpoint.id, sinceMs: nowMs - FAILURES_COUNT_FOR_MS })
  return { ...(await viewEndpoint(reads, state)), failures, fingerprints }
}
