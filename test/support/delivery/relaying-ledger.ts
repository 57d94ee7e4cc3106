import type { Arrival } from '../network/moody-receiver.ts'

/** A delivery as the relay's API reports it. */
export interface ToldDelivery {
  readonly sequence: number
  readonly webhookId: string
  readonly state: string
  readonly reason: string | null
}

export interface EndpointLedger {
  readonly name: string
  readonly arrivals: readonly Arrival[]
  readonly deliveries: readonly ToldDelivery[]
}

export interface Ledger {
  /** The bodies of pushes that were answered 200. */
  readonly acknowledged: readonly string[]
  readonly parcelOf: (body: string) => string
  readonly endpoints: readonly EndpointLedger[]
}

/** Lists the deliveries that break a promise of the relay, one line each. */
export function breaches({ acknowledged, parcelOf, endpoints }: Ledger): readonly string[] {
  const sequenceOf = new Map(endpoints.flatMap(({ arrivals }) => arrivals.map(({ body, sequence }) => [body, sequence] as const)))
  const bodyOf = new Map([...sequenceOf].map(([body, sequence]) => [sequence, body]))
  return endpoints.flatMap((endpoint) => {
    const found = [...debts(endpoint, acknowledged, sequenceOf), ...identities(endpoint), ...order(endpoint, parcelOf, bodyOf)]
    return found.map((breach) => `${endpoint.name}: ${breach}`)
  })
}

/** Checks that every event either ended as delivered and was accepted, or ended as dead with a reason. */
function debts({ arrivals, deliveries }: EndpointLedger, acknowledged: readonly string[], sequenceOf: ReadonlyMap<string, number>) {
  const bySequence = new Map(deliveries.map((delivery) => [delivery.sequence, delivery]))
  const taken = new Set(arrivals.filter(({ accepted }) => accepted).map(({ sequence }) => sequence))
  const owed = acknowledged.flatMap((body) => {
    const sequence = sequenceOf.get(body)
    if (sequence === undefined) return [`nobody ever got ${body}`]
    return bySequence.has(sequence) ? [] : [`nothing was queued for ${sequence}`]
  })
  const ended = deliveries.flatMap(({ sequence, state, reason }) => {
    if (state === 'delivered') return taken.has(sequence) ? [] : [`${sequence} is called delivered and was never taken`]
    return state === 'dead' && reason !== null ? [] : [`${sequence} ended as ${state}, reason ${reason}`]
  })
  return [...owed, ...ended]
}

/** Checks that all arrivals of an event have the same id and bytes, and a valid signature. */
function identities({ arrivals, deliveries }: EndpointLedger): readonly string[] {
  const told = new Map(deliveries.map(({ sequence, webhookId }) => [sequence, webhookId]))
  const bodies = new Map<string, string>()
  return arrivals.flatMap(({ webhookId, sequence, body, isSigned }) => {
    const known = bodies.get(webhookId) ?? body
    bodies.set(webhookId, known)
    const wrong = [
      told.get(sequence) === webhookId ? null : `${sequence} came as ${webhookId}`,
      known === body ? null : `${webhookId} came with another body`,
      isSigned ? null : `${webhookId} came with a wrong signature`,
    ]
    return wrong.filter((one) => one !== null)
  })
}

/** Checks that the events of a parcel arrive in order, and that each names the previous event of its parcel. */
function order({ arrivals, deliveries }: EndpointLedger, parcelOf: Ledger['parcelOf'], bodyOf: ReadonlyMap<number, string>) {
  const last = new Map<string, number>()
  const late = arrivals.flatMap(({ body, sequence }) => {
    const parcel = parcelOf(body)
    const before = last.get(parcel) ?? 0
    last.set(parcel, Math.max(before, sequence))
    return sequence < before ? [`${sequence} came after ${before} of parcel ${parcel}`] : []
  })
  const previous = new Map<number, number>()
  const newest = new Map<string, number>()
  for (const { sequence } of deliveries.toSorted((a, b) => a.sequence - b.sequence)) {
    const parcel = parcelOf(bodyOf.get(sequence) ?? '')
    previous.set(sequence, newest.get(parcel) ?? 0)
    newest.set(parcel, sequence)
  }
  const unlinked = arrivals.flatMap((arrival) => {
    const wanted = previous.get(arrival.sequence)
    return wanted === arrival.previous ? [] : [`${arrival.sequence} names ${arrival.previous} as the one before it, which was ${wanted}`]
  })
  return [...late, ...unlinked]
}
