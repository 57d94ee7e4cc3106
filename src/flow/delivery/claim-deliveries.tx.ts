import { CLAIMS_PER_ATTEMPT } from '../../domain/delivery/delivery.ts'
import type { ClaimedDelivery, ClaimRef, DispatchRound, DispatchRoundReport, NextDelivery } from '../../domain/delivery/dispatch-round.ts'
import type { Endpoint } from '../../domain/delivery/endpoint.ts'
import { type EndpointHealth, isProbeDue, onlyFailedParcel } from '../../domain/delivery/endpoint-health.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import type { WriteTx } from '../write-store.ts'

export interface ClaimOptions {
  readonly perEndpoint: number
}

export interface DeliveryClaims {
  readonly states: readonly EndpointState[]
  readonly request: DispatchRound
}

/**
 * Claims what is due for every enabled endpoint with room, and says when to look again: without room it is the end of an attempt that calls
 * for it. What is claimed keeps its parcel, whatever else of it is due: two of one parcel are never under way at one endpoint (DOMAIN 7.3).
 */
export async function claimDeliveries(
  tx: WriteTx,
  { states, request }: DeliveryClaims,
  options: ClaimOptions,
): Promise<Pick<DispatchRoundReport, 'claimed' | 'overtaken' | 'more' | 'nextAtMs'>> {
  const { nowMs } = request
  const more: string[] = []
  const found: (readonly NextDelivery[])[] = []
  const overtaken: ClaimRef[] = []
  let nextAtMs: number | null = null
  for (const state of states) {
    const { id } = state.endpoint
    if (state.disabled !== null) continue
    const claims = await tx.reviewClaims(request.inFlight[id] ?? [])
    overtaken.push(...claims.overtaken.map((deliveryId) => ({ endpointId: id, deliveryId })))
    const room = roomOf(state, request, options)
    if (room <= 0) {
      more.push(id)
      continue
    }
    const { round, wokenAtMs, probing } = state.health
    if (probing !== null) {
      // One at a time: what is under way says first what became of it.
      const isUnderWay = (request.inFlight[id] ?? []).length > 0
      const { probe, atMs } = isUnderWay ? NO_PROBE : await findProbe(tx, probing, state, nowMs)
      if (probe !== null) found.push([probe])
      nextAtMs = earlier(nextAtMs, atMs)
      continue
    }
    const next = await tx.findNextDeliveries({ endpointId: id, round, wokenAtMs, besides: claims.parcelIds, limit: room, nowMs })
    const due = next.filter(({ dueAtMs }) => dueAtMs <= nowMs)
    found.push(due)
    if (due.length === room) more.push(id)
    nextAtMs = earlier(nextAtMs, next[due.length]?.dueAtMs ?? null)
  }
  return { claimed: interleave(found), overtaken, more, nextAtMs }
}

interface ProbeLook {
  readonly probe: NextDelivery | null
  /** When to look again. */
  readonly atMs: number | null
}

const NO_PROBE: ProbeLook = { probe: null, atMs: null }

/** What an endpoint that is failing is asked with now, or when it is to be asked. */
async function findProbe(
  tx: WriteTx,
  probing: NonNullable<EndpointHealth['probing']>,
  { endpoint, health }: EndpointState,
  nowMs: number,
): Promise<ProbeLook> {
  const endpointId = endpoint.id
  if (isProbeDue(probing, nowMs)) return { probe: await tx.findProbe({ endpointId, exceptParcelId: null, nowMs }), atMs: null }
  // All it refused is of one parcel: if there is another by now, that need not wait to show whose fault it is.
  const exceptParcelId = onlyFailedParcel(health.failedParcels)
  const other = exceptParcelId === null ? null : await tx.findProbe({ endpointId, exceptParcelId, nowMs })
  return { probe: other, atMs: other === null ? probing.atMs : null }
}

/**
 * The first of each endpoint, then the second of each: so their answers, too, come from all at much the same time, and one turn takes them
 * all. Who is furthest behind begins: else who begins would always be answered first, and endpoints that are owed the same would drift apart.
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
 * To one that takes what it is sent, more is handed out than it is sent at the same time: when an attempt ends another begins, and does not
 * wait until the first is written down. Not to one with a rate, which would be sent in a burst what it should be sent by and by.
 */
function roomOf({ endpoint, health }: EndpointState, request: DispatchRound, { perEndpoint }: ClaimOptions): number {
  const atOnce = endpoint.concurrency ?? perEndpoint
  const isFlowing = health.failingSinceMs === null && endpoint.ratePerSecond === null
  return Math.min(
    atOnce * (isFlowing ? CLAIMS_PER_ATTEMPT : 1) - (request.inFlight[endpoint.id]?.length ?? 0),
    allowanceOf(endpoint, request),
  )
}

/** Whoever asks first does not know yet that the endpoint has a rate: one attempt is within any. */
function allowanceOf(endpoint: Endpoint, { allowance, claimsMax }: DispatchRound): number {
  const allowed = allowance[endpoint.id] ?? (endpoint.ratePerSecond === null ? claimsMax : 1)
  return Math.min(allowed, claimsMax)
}

function earlier(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other)
}
