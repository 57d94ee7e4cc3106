import type { KeyFingerprints } from '../../domain/delivery/delivery-request.ts'
import { FAILURES_COUNT_FOR_MS, type FailureGroup } from '../../domain/delivery/dispatch-round.ts'
import { probeLooks } from '../../domain/delivery/endpoint-health.ts'
import type { SecretOrigin } from '../../domain/delivery/endpoint-keys.ts'
import { type EndpointBacklog, type EndpointState, NO_BACKLOG } from '../../domain/delivery/endpoint-state.ts'
import { limitOf, type ShownLimit } from '../../domain/delivery/pace.ts'
import type { ReadSide } from '../../store/read-store.ts'

/** The next attempt at a failing endpoint, epoch milliseconds. */
export interface NextProbe {
  /** When a delivery that waits now is attempted; null: no delivery waits. */
  readonly atMs: number | null
  /** When an event that arrived now would be attempted, if no other delivery of its parcel waits. */
  readonly ofNewMs: number
}

export interface EndpointView extends EndpointState {
  /** Null: it is not failing, or it is disabled. */
  readonly nextProbe: NextProbe | null
  /** Null: it does not limit us, or it is disabled. */
  readonly limit: ShownLimit | null
  readonly backlog: EndpointBacklog
  /** The last failure, and how often it has occurred; null: there was none. */
  readonly lastFailure: FailureGroup | null
}

/** An endpoint with its failures, the last one first. */
export interface InspectedEndpoint extends EndpointView {
  readonly failures: readonly FailureGroup[]
  /** Null: the relay cannot open the endpoint's key, or does not know the key. */
  readonly fingerprints: KeyFingerprints | null
  /** Where the config takes the key from; null: the key is not in the config, or is written there as text. */
  readonly keyFrom: SecretOrigin | null
}

type ViewReads = Pick<ReadSide, 'countBacklogs' | 'hasProbe' | 'lastFailures'>

/** The cost grows with the number of waiting and dead deliveries; see `countBacklogs`. */
export async function viewEndpoints(reads: ViewReads, states: readonly EndpointState[], nowMs: number): Promise<readonly EndpointView[]> {
  const ids = states.map(({ endpoint }) => endpoint.id)
  const [failures, backlogs] = [await reads.lastFailures(ids), await reads.countBacklogs(ids)]
  const views: EndpointView[] = []
  for (const state of states) {
    const { id } = state.endpoint
    const nextProbe = await findNextProbe(reads, state, nowMs)
    const limit = state.disabled === null ? limitOf(state.health.pace, nowMs) : null
    views.push({ ...state, nextProbe, limit, backlog: backlogs.get(id) ?? NO_BACKLOG, lastFailure: failures.get(id) ?? null })
  }
  return views
}

async function findNextProbe(
  reads: Pick<ReadSide, 'hasProbe'>,
  { endpoint, disabled, health }: EndpointState,
  nowMs: number,
): Promise<NextProbe | null> {
  const looks = disabled === null ? probeLooks(health, nowMs) : []
  const [soonest] = looks
  if (soonest === undefined) return null
  for (const { atMs, exceptParcelIds, beforeRound } of looks) {
    if (await reads.hasProbe({ endpointId: endpoint.id, exceptParcelIds, beforeRound })) return { atMs, ofNewMs: soonest.atMs }
  }
  return { atMs: null, ofNewMs: soonest.atMs }
}

export async function viewEndpoint(reads: ViewReads, state: EndpointState, nowMs: number): Promise<EndpointView> {
  const [view] = await viewEndpoints(reads, [state], nowMs)
  return view ?? { ...state, nextProbe: null, limit: null, backlog: NO_BACKLOG, lastFailure: null }
}

export async function inspectEndpoint(
  reads: ViewReads & Pick<ReadSide, 'listFailures'>,
  state: EndpointState,
  { nowMs, ...ofKey }: Pick<InspectedEndpoint, 'fingerprints' | 'keyFrom'> & { readonly nowMs: number },
): Promise<InspectedEndpoint> {
  const failures = await reads.listFailures({ endpointId: state.endpoint.id, sinceMs: nowMs - FAILURES_COUNT_FOR_MS })
  return { ...(await viewEndpoint(reads, state, nowMs)), failures, ...ofKey }
}
