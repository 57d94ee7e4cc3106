import type { Job } from '../../core/domain/admin/job.ts'
import type { Actor } from '../../core/domain/admin/operator-action.ts'
import type { DeliverySelection, EndedReplay, ReplayCount } from '../../core/domain/delivery/delivery-list.ts'
import type { EndpointState } from '../../core/domain/delivery/endpoint-state.ts'
import type { FeedItem, FeedKind } from '../../core/domain/delivery/feed-entry.ts'
import { AppError } from '../../core/domain/errors.ts'
import { createReplays, type ReplaysPorts } from '../../core/flow/delivery/janitor.ts'
import { anyOf, ENDED, findParcelId } from '../../core/flow/delivery/manage-deliveries.ts'
import type { Reads, Writes } from '../../core/flow/relay-part.ts'
import type { ReadSide } from '../../core/store/read-store.ts'
import { parseReplayOrder, type ReplayOrder } from './replay.rules.ts'

interface ReplayManyPorts
  extends Omit<ReplaysPorts, 'reads' | 'write'>,
    Reads<'listEndpoints' | 'countReplayable' | 'findQueued' | 'readFeed' | 'findParcel'>,
    Writes<'replayDeliveries' | 'cancelRemoved' | 'startJob'> {
  /** Called when a job was queued. */
  readonly work: () => void
}

type ReplayedOrder = Omit<ReplayOrder, 'parcel' | 'dryRun'>

interface Planned {
  readonly task: EndedReplay
  readonly counted: ReplayCount & { readonly more: boolean }
}

export interface ReplayAsker {
  readonly by: Actor
  readonly left: AbortSignal
  /**
   * When the asker counted the deliveries, epoch milliseconds; default: now. If the order selects by time, deliveries that were queued
   * after this are left out. So if an order is given twice, the second order does not replay the deliveries that the first order has queued.
   */
  readonly untilMs?: number
}

/** `because`: why the order selects nothing; absent: it selects something. */
interface None {
  readonly because?: string
}

export type ReplayAnswer =
  /** `more`: counting stopped at the limit, so there may be more. */
  | ({ readonly kind: 'counted'; readonly more: boolean } & ReplayCount & None)
  | ({ readonly kind: 'replayed'; readonly count: number } & None)
  | { readonly kind: 'job'; readonly job: Job }

/** Up to this many deliveries are replayed while the asker waits. More become a job. */
const AT_ONCE_MAX = 10_000
/**
 * Queues deliveries for an endpoint. The order selects its own ended deliveries, or the events of another endpoint's deliveries. More than 10,000
 * become a job. `dryRun`: only counts them, up to 10,001. Stops when the asker has `left`.
 */
export type ReplayMany = (endpointId: string, body: unknown, asker: ReplayAsker) => Promise<ReplayAnswer>

export function createReplayMany(ports: ReplayManyPorts): ReplayMany {
  const { write, reads, clock, work } = ports
  const { findTarget, replayAll, settleRemoved } = createReplays(ports)

  return async (endpointId, body, asker) => {
    const { parcel, dryRun, ...order } = parseReplayOrder(body)
    const state = await findTarget(endpointId)
    if (state === null) throw new AppError('not_found', 'There is no such endpoint.')
    const parcelId = parcel === null ? null : await findParcelId(reads, parcel)
    const { task, counted } = await ended(endpointId, order, parcelId, asker)
    const { count, more } = counted
    const { selection, untilMs } = task
    const none = count > 0 ? {} : { because: await explainNone(reads, { ofId: selection.endpointId, state, order, selection, untilMs }) }
    if (dryRun) return { kind: 'counted', ...counted, ...none }
    const { fromSequence, fromMs, sequence, states } = order
    const detail = { fromSequence, fromMs, sequence, parcel, states, of: selection.endpointId, count }
    const target = { kind: 'endpoint', id: endpointId } as const
    const action = { atMs: clock.now(), by: asker.by, action: 'deliveries.replayed', target, detail } as const
    if (!more) {
      if (selection.endpointId !== endpointId) await settleRemoved(asker.left)
      return { kind: 'replayed', count: await replayAll(task, asker.left, action), ...none }
    }
    const job = await write.startJob({ task: { kind: 'replay', ...task }, by: asker.by.name, nowMs: clock.now(), action })
    if (job === null) throw new AppError('too_many_jobs', 'A hundred jobs have not ended yet. Cancel one, or ask again later.')
    work()
    return { kind: 'job', job }
  }

  /** Selects the ended deliveries that an order asks for. */
  async function ended(
    to: string,
    { of, fromSequence, fromMs, sequence, states }: ReplayedOrder,
    parcelId: number | null,
    { untilMs = Number.MAX_SAFE_INTEGER }: ReplayAsker,
  ): Promise<Planned> {
    const selection = { ...anyOf(of ?? to), states, fromSequence, fromMs, sequence, parcelId }
    const task = { selection, to, untilMs: Math.min(untilMs, clock.now()) }
    const counted = await reads.countReplayable({ ...task, limit: AT_ONCE_MAX + 1 })
    return { task, counted: { ...counted, more: counted.count > AT_ONCE_MAX } }
  }
}

type QueueReads = Pick<ReadSide, 'countReplayable' | 'findQueued' | 'readFeed'>

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

/** Events of these kinds are not sent to endpoints. */
const UNSENT: readonly FeedKind[] = ['update', 'join', 'retired', 'erased']

/** Says in a sentence why a replay selects nothing. */
async function explainNone(reads: QueueReads, found: NoneFound): Promise<string> {
  const { sequence } = found.order
  if (sequence !== null) return await explainEvent(reads, found, sequence)
  return (await otherState(reads, found)) ?? 'No delivery that matches has ended. What still waits is sent without a replay.'
}

async function explainEvent(reads: QueueReads, found: NoneFound, sequence: number): Promise<string> {
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

async function explainDelivery(reads: QueueReads, found: NoneFound, sequence: number): Promise<string> {
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
async function otherState(reads: QueueReads, { order, selection, untilMs }: NoneFound): Promise<string | null> {
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
