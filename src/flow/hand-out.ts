import type { Endpoint } from '../domain/endpoint.ts'
import type { Claims } from './claims.ts'
import type { ClaimedDelivery, DeliveryTurn, DeliveryTurnReport, EndpointState, WriteTx } from './ports.ts'

export interface HandOutOptions {
  readonly perEndpoint: number
  readonly leaseMs: number
}

export interface HandOut {
  readonly states: readonly EndpointState[]
  readonly turn: DeliveryTurn
  readonly claims: Claims
  /** Filled with what is claimed. */
  readonly claimed: ClaimedDelivery[]
}

/** Claims what is due for every enabled endpoint with room, and says when to look again: without room it is the end of an attempt that calls for it. */
export async function handOut(
  tx: WriteTx,
  { states, turn, claims, claimed }: HandOut,
  options: HandOutOptions,
): Promise<Pick<DeliveryTurnReport, 'more' | 'nextAtMs'>> {
  const { nowMs } = turn
  const more: string[] = []
  let nextAtMs: number | null = null
  for (const { endpoint, disabled } of states) {
    const { id } = endpoint
    const room = disabled === null ? roomOf(endpoint, turn, options) : 0
    if (room <= 0) continue
    const held = claims.of(id, nowMs)
    const [lapsesAtMs = null] = held.values()
    const { due, isMoreDue, laterAtMs } = await findFree(tx, id, { nowMs, room, held })
    for (const deliveryId of due) {
      claims.add(id, deliveryId, nowMs + options.leaseMs)
      claimed.push(await tx.loadDelivery(deliveryId))
    }
    if (isMoreDue) more.push(id)
    nextAtMs = earlier(nextAtMs, earlier(laterAtMs, lapsesAtMs))
  }
  return { more, nextAtMs }
}

interface Free {
  readonly due: readonly number[]
  readonly isMoreDue: boolean
  /** Null: nothing waits, or more is due already. */
  readonly laterAtMs: number | null
}

/** What is due and not claimed, as far as there is room, and what comes after it. */
async function findFree(
  tx: WriteTx,
  endpointId: string,
  { nowMs, room, held }: { readonly nowMs: number; readonly room: number; readonly held: ReadonlyMap<number, number> },
): Promise<Free> {
  const first = await tx.findNextDeliveries({ endpointId, limit: room + held.size + 1 })
  const free = first.filter(({ deliveryId }) => !held.has(deliveryId))
  const due = free.filter(({ dueAtMs }, at) => at < room && dueAtMs <= nowMs)
  const next = free[due.length]
  const isMoreDue = next !== undefined && next.dueAtMs <= nowMs
  return { due: due.map(({ deliveryId }) => deliveryId), isMoreDue, laterAtMs: isMoreDue ? null : (next?.dueAtMs ?? null) }
}

function roomOf(endpoint: Endpoint, turn: DeliveryTurn, { perEndpoint }: HandOutOptions): number {
  return Math.min((endpoint.concurrency ?? perEndpoint) - (turn.inFlight[endpoint.id] ?? 0), allowanceOf(endpoint, turn))
}

/** Whoever asks first does not know yet that the endpoint has a rate: one attempt is within any. */
function allowanceOf(endpoint: Endpoint, { allowance, claimsMax }: DeliveryTurn): number {
  const allowed = allowance[endpoint.id] ?? (endpoint.ratePerSecond === null ? claimsMax : 1)
  return Math.min(allowed, claimsMax)
}

function earlier(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other)
}
