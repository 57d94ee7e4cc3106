import type {
  ClaimedDelivery,
  ClaimRef,
  DeliveryRules,
  DispatchRound,
  DispatchRoundReport,
  NextDelivery,
} from '../../../domain/delivery/dispatch-round.ts'
import { paceAt, pausedUntil, probeLooks } from '../../../domain/delivery/endpoint-health.ts'
import type { Endpoint, EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import { findOvertaken } from '../../../store/delivery/deliveries.ts'
import { findProbe } from '../../../store/delivery/next-deliveries.ts'
import type { Session } from '../../../store/engine.ts'
import type { WriteTx } from '../../../store/write-store.ts'

export type ClaimOptions = Pick<DeliveryRules, 'perEndpoint' | 'claimsPerAttempt'>

/**
 * Claims due deliveries for every enabled endpoint that has room, and reports when the next ones are due. While a delivery is claimed, no other
 * delivery of its parcel is claimed for the same endpoint (DOMAIN 7.3).
 */
export async function claimDeliveries(
  tx: WriteTx,
  { states, request }: { readonly states: readonly EndpointState[]; readonly request: DispatchRound },
  options: ClaimOptions,
): Promise<Pick<DispatchRoundReport, 'claimed' | 'overtaken' | 'more' | 'nextAtMs'>> {
  const enabled = states.filter(({ disabled, endpoint }) => disabled === null && request.held?.includes(endpoint.id) !== false)
  // Ask for all endpoints at once, because PostgreSQL answers such queries in one round trip.
  const claims = await Promise.all(enabled.map((state) => claimFor(tx, state, request, options)))
  return {
    claimed: interleave(claims.map(({ found }) => found)),
    overtaken: claims.flatMap(({ overtaken }) => overtaken),
    more: enabled.filter((_, at) => claims[at]?.isMoreDue === true).map(({ endpoint }) => endpoint.id),
    nextAtMs: claims.map(({ nextAtMs }) => nextAtMs).reduce(earlier, null),
  }
}

interface FoundClaims {
  readonly found: readonly NextDelivery[]
  /** Whether more deliveries may be due than the endpoint has room for. */
  readonly isMoreDue: boolean
  /** When to look again, epoch milliseconds; null: no time is known. */
  readonly nextAtMs: number | null
}

async function claimFor(
  tx: WriteTx,
  state: EndpointState,
  request: DispatchRound,
  options: ClaimOptions,
): Promise<FoundClaims & { readonly overtaken: readonly ClaimRef[] }> {
  const endpointId = state.endpoint.id
  const underWay = request.inFlight[endpointId] ?? []
  const [overtaken, found] = await Promise.all([findOvertaken(tx, underWay), findClaims(tx, state, { ...request, underWay }, options)])
  return { ...found, overtaken: overtaken.map((deliveryId) => ({ endpointId, deliveryId })) }
}

async function findClaims(
  tx: WriteTx,
  state: EndpointState,
  request: DispatchRound & { readonly underWay: readonly number[] },
  options: ClaimOptions,
): Promise<FoundClaims> {
  const { nowMs, underWay } = request
  const pausedMs = pausedUntil(state.health, nowMs)
  if (pausedMs !== null) return { found: [], isMoreDue: false, nextAtMs: pausedMs }
  const room = roomOf(state, request, options)
  if (room <= 0) return { found: [], isMoreDue: true, nextAtMs: null }
  const { round, wokenAtMs, probing } = state.health
  if (probing !== null) {
    // Only one probe is under way at a time, so wait for its result.
    const { probe, atMs } = underWay.length > 0 ? NO_PROBE : await nextProbe(tx, state, nowMs)
    return { found: probe === null ? [] : [probe], isMoreDue: false, nextAtMs: atMs }
  }
  const asked = { endpointId: state.endpoint.id, round, wokenAtMs, underWay, limit: room, nowMs }
  const { deliveries: next, lookAgainAtMs } = await tx.findNextDeliveries(asked)
  const due = next.filter(({ dueAtMs }) => dueAtMs <= nowMs)
  return { found: due, isMoreDue: due.length === room, nextAtMs: earlier(next[due.length]?.dueAtMs ?? null, lookAgainAtMs) }
}

interface FoundProbe {
  readonly probe: NextDelivery | null
  /** When to look again; null: no time is known. */
  readonly atMs: number | null
}

const NO_PROBE: FoundProbe = { probe: null, atMs: null }

/** Finds a probe for a failing endpoint, or the time at which the next one is due. */
async function nextProbe(tx: Session, { endpoint, health }: EndpointState, nowMs: number): Promise<FoundProbe> {
  for (const { atMs, ...look } of probeLooks(health, nowMs)) {
    if (atMs > nowMs) return { probe: null, atMs }
    const probe = await findProbe(tx, { endpointId: endpoint.id, ...look, nowMs })
    if (probe !== null) return { probe, atMs: null }
  }
  return NO_PROBE
}

/**
 * Mixes deliveries: the first of each endpoint, then the second of each. So all endpoints answer at about the same time, and one round
 * settles their deliveries. The endpoint that is furthest behind comes first, so that the endpoints stay level.
 */
function interleave(lists: readonly (readonly NextDelivery[])[]): readonly ClaimedDelivery[] {
  const ordered = lists.toSorted(
    ([one], [other]) => (one?.dueAtMs ?? 0) - (other?.dueAtMs ?? 0) || (one?.sequence ?? 0) - (other?.sequence ?? 0),
  )
  const longest = Math.max(0, ...ordered.map(({ length }) => length))
  const turns: NextDelivery[] = []
  for (let nth = 0; nth < longest; nth++) {
    for (const list of ordered) {
      const delivery = list[nth]
      if (delivery !== undefined) turns.push(delivery)
    }
  }
  return turns
}

/**
 * Returns how many more deliveries may be claimed for an endpoint. A healthy endpoint gets more claims than concurrent attempts, so that its
 * next attempt can start before the last result is stored. An endpoint with a rate or a pace gets no extra claims: they would be sent in bursts.
 */
function roomOf({ endpoint, health }: EndpointState, request: DispatchRound, { perEndpoint, claimsPerAttempt }: ClaimOptions): number {
  const atOnce = endpoint.concurrency ?? perEndpoint
  const isFlowing = health.failingSinceMs === null && endpoint.ratePerSecond === null && paceAt(health.pace, request.nowMs) === null
  return Math.min(
    atOnce * (isFlowing ? claimsPerAttempt : 1) - (request.inFlight[endpoint.id]?.length ?? 0),
    allowanceOf(endpoint, request),
  )
}

/** In the first round, an endpoint with a rate has no allowance yet. It gets one attempt, which any rate allows. */
function allowanceOf(endpoint: Endpoint, { allowance, claimsMax }: DispatchRound): number {
  const allowed = allowance[endpoint.id] ?? (endpoint.ratePerSecond === null ? claimsMax : 1)
  return Math.min(allowed, claimsMax)
}

function earlier(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other)
}
