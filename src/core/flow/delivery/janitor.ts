import type { OperatorAction } from '../../domain/admin/operator-action.ts'
import type { EndedReplay, ReplayedBatch } from '../../domain/delivery/delivery-list.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import { AppError } from '../../domain/errors.ts'
import type { Duty } from '../ports.ts'
import type { Part, Reads, Relay, Writes } from '../relay-part.ts'

/** Small, because a push that arrives during a replay waits for up to one batch. */
const REPLAY_BATCH_SIZE = 100

export interface ReplaysPorts extends Pick<Relay, 'clock'>, Reads<'listEndpoints'>, Writes<'replayDeliveries' | 'cancelRemoved'> {
  /** Called when the order of waiting deliveries may have changed. */
  readonly review: () => void
  /** Runs work that delays pushes, one piece at a time, with rests in between. */
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>
  /** Aborted when the relay stops. Running requests then stop early. */
  readonly stopping: AbortSignal
}

/** Replays deliveries while somebody waits, a batch at a time. */
export function createReplays(ports: ReplaysPorts) {
  /** Null: no endpoint has this id. Throws `not_replayable` while the endpoint is catching up. */
  async function findTarget(endpointId: string): Promise<EndpointState | null> {
    const state = (await ports.reads.listEndpoints()).find(({ endpoint, origin }) => endpoint.id === endpointId && origin !== 'operator')
    if (state === undefined) return null
    if (state.queuedTo === null) return state
    throw new AppError('not_replayable', 'The endpoint is still catching up with the feed: replay when it has.')
  }

  /**
   * Replays all batches of a task, until it is done or the asker has `left`. Returns how many deliveries were queued. The first batch adds
   * `action` to the audit trail.
   */
  async function replayAll(task: EndedReplay, left: AbortSignal, action: OperatorAction): Promise<number> {
    let count = 0
    let cursor: ReplayedBatch['next'] = null
    do {
      const after: ReplayedBatch['next'] = cursor
      const order = count === 0 ? { action } : {}
      const batch: ReplayedBatch | null = await ports.inTurn(() =>
        ports.write.replayDeliveries({ ...task, ...order, after, limit: REPLAY_BATCH_SIZE, nowMs: ports.clock.now() }),
      )
      count += batch?.count ?? 0
      cursor = batch?.next ?? null
      ports.review()
      if (cursor !== null && ports.stopping.aborted) throw stopped(count)
    } while (cursor !== null && !left.aborted)
    return count
  }

  /** Marks all deliveries of removed endpoints as cancelled, because a replay selects only deliveries that have ended. */
  async function settleRemoved(left: AbortSignal): Promise<void> {
    while (!left.aborted && !(await ports.inTurn(() => ports.write.cancelRemoved({ limit: REPLAY_BATCH_SIZE }))).isDone) {
      if (ports.stopping.aborted) throw stopped(0)
    }
  }

  return { findTarget, replayAll, settleRemoved }
}

function stopped(count: number): AppError {
  return new AppError('storage_unavailable', `The relay is stopping. ${count} deliveries were queued again. Ask again for the rest.`, {
    retryAfterMs: 5000,
  })
}

/** How many events of the feed one transaction queues. Pushes wait for it about as long as for a batch of other pushes. */
const CATCH_UP_EVENTS = 100

interface DutyPorts extends Part<'clock', 'now'>, Writes<'replayFeed' | 'cancelRemoved'>, Pick<ReplaysPorts, 'inTurn'> {
  readonly onQueued: () => void
}

const LOOK_AT_REMOVED_MS = 60_000

/** The janitor's long work of delivery: it queues the feed for endpoints that catch up, and cancels what waits for removed ones. */
export function deliveryDuties({ write, clock, inTurn, onQueued }: DutyPorts): readonly Duty[] {
  return [
    {
      role: 'janitor',
      afterOrders: true,
      failure: 'cannot queue events of the feed for an endpoint; the relay retries',
      async pass() {
        const { queued, isDone } = await write.replayFeed({ limit: CATCH_UP_EVENTS, nowMs: clock.now() })
        if (queued > 0) onQueued()
        return isDone ? 'idle' : 'busy'
      },
    },
    {
      role: 'janitor',
      everyMs: LOOK_AT_REMOVED_MS,
      afterOrders: true,
      needsRoom: true,
      failure: 'cannot cancel deliveries to a removed endpoint; the relay retries',
      pass: async () => ((await inTurn(() => write.cancelRemoved({ limit: REPLAY_BATCH_SIZE }))).isDone ? 'idle' : 'busy'),
    },
  ]
}
