import type { DeliverySelection } from '../../domain/delivery/delivery-list.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import type { FeedItem, FeedKind } from '../../domain/delivery/feed-event.ts'
import type { ReplayOrder } from '../../domain/delivery/replay-order.ts'
import type { ReadSide } from '../../store/read-side.ts'

type Reads = Pick<ReadSide, 'countReplayable' | 'findQueued' | 'readFeed'>

interface NoneFound {
  /** The endpoint whose deliveries were searched. */
  readonly ofId: string
  /** The endpoint to send to. */
  readonly state: EndpointState
  readonly order: Pick<ReplayOrder, 'sequence' | 'states'>
  /** The selection that has found nothing. */
  readonly selection: DeliverySelection
  readonly untilMs: number
}

const ENDED = ['delivered', 'dead', 'cancelled'] as const
/** Events of these kinds are not sent to endpoints. */
const UNSENT: readonly FeedKind[] = ['update', 'join', 'retired', 'erased']

/** Says in a sentence why a replay selects nothing. */
export async function explainNone(reads: Reads, found: NoneFound): Promise<string> {
  const { sequence } = found.order
  if (sequence !== null) return await explainEvent(reads, found, sequence)
  return (await otherState(reads, found)) ?? 'No delivery that matches has ended. What still waits is sent without a replay.'
}

async function explainEvent(reads: Reads, found: NoneFound, sequence: number): Promise<string> {
  const { items, prunedTo, last } = await reads.readFeed({ after: sequence - 1, limit: 1 })
  const item = items.find((one) => one.sequence === sequence)
  if (item === undefined) {
    if (sequence > last) return `There is no event ${sequence}: the feed ends at ${last}.`
    return sequence <= prunedTo ? `The feed no longer has event ${sequence} (retention.feed).` : `There is no event ${sequence}.`
  }
  if (UNSENT.includes(item.kind)) return `Event ${sequence} is of the kind ${item.kind}, which endpoints are not sent.`
  const parcelId = parcelOf(item)
  const wantedId = found.selection.parcelId
  if (wantedId !== null && wantedId !== parcelId) return `Event ${sequence} is about another parcel.`
  const queued = await reads.findQueued({ endpointId: found.ofId, events: [{ parcelId, sequence }] })
  if (queued.has(sequence)) return await explainDelivery(reads, found, sequence)
  return explainUnsent(found, sequence)
}

async function explainDelivery(reads: Reads, found: NoneFound, sequence: number): Promise<string> {
  const { selection, untilMs } = found
  const { count } = await reads.countReplayable({ selection: { ...selection, fromSequence: 0, fromMs: 0 }, untilMs, limit: 1 })
  if (count > 0) return `The delivery of event ${sequence} is older than the start of the selection (since).`
  return (await otherState(reads, found)) ?? `The delivery of event ${sequence} has not ended: it is sent without a replay.`
}

function explainUnsent({ ofId, state }: NoneFound, sequence: number): string {
  if (ofId === state.endpoint.id && sequence < state.firstSequence)
    return `The endpoint was set up later than event ${sequence}: it is sent events from ${state.firstSequence} on.`
  return `The endpoint has no delivery of event ${sequence}: its filters do not take it, or the delivery is no longer kept (retention.deliveries), or it happened before the endpoint began and backfill was off.`
}

/** Says in which other state matching deliveries have ended; null: there are none. */
async function otherState(reads: Reads, { order, selection, untilMs }: NoneFound): Promise<string | null> {
  for (const state of ENDED) {
    if (order.states.includes(state)) continue
    const { count } = await reads.countReplayable({ selection: { ...selection, states: [state] }, untilMs, limit: 1 })
    if (count > 0) return `Matching deliveries are in the state ${state}, which was not asked for: give that state to send them again.`
  }
  return null
}

function parcelOf(item: FeedItem): number {
  return 'parcelId' in item ? item.parcelId : item.parcel.parcelId
}
