import type { ReplayedBatch, ReplayTask } from '../../domain/delivery/delivery-list.ts'
import { AppError } from '../../domain/errors.ts'
import type { Clock } from '../ports.ts'
import type { ReadSide } from '../read-side.ts'
import type { WriteSide } from '../write-side.ts'

/** Whoever pushes meanwhile waits no longer than for a batch. */
export const REPLAY_BATCH_SIZE = 100

export interface ReplaysPorts {
  readonly write: Pick<WriteSide, 'replayDeliveries' | 'cancelRemoved'>
  readonly reads: Pick<ReadSide, 'listEndpoints'>
  readonly clock: Pick<Clock, 'now'>
  /** What waits may have another place in the order of its parcel. */
  readonly review: () => void
  /** Runs what keeps pushes waiting, one after the other, with rests between. */
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>
  /** The relay stops: what somebody waits for ends where it is. */
  readonly stopping: AbortSignal
}

/** Replays that somebody waits for, a stretch at a time. */
export function createReplays(ports: ReplaysPorts) {
  /** Whether something can be queued for an endpoint; false: it was removed, or never was. */
  async function isReady(endpointId: string): Promise<boolean> {
    const state = (await ports.reads.listEndpoints()).find(({ endpoint, origin }) => endpoint.id === endpointId && origin !== 'operator')
    if (state === undefined) return false
    if (state.queuedTo === null) return true
    throw new AppError('not_replayable', 'The endpoint is still being queued what is older: replay when it has caught up.')
  }

  /** `left`: nobody waits for it any more. */
  async function replayAll(task: ReplayTask, left: AbortSignal): Promise<number> {
    let count = 0
    let place: ReplayedBatch['next'] = null
    do {
      const after: ReplayedBatch['next'] = place
      const stretch: ReplayedBatch | null = await ports.inTurn(() =>
        ports.write.replayDeliveries({ ...task, after, limit: REPLAY_BATCH_SIZE, nowMs: ports.clock.now() }),
      )
      count += stretch?.count ?? 0
      place = stretch?.next ?? null
      ports.review()
      if (place !== null && ports.stopping.aborted) throw stopped(count)
    } while (place !== null && !left.aborted)
    return count
  }

  /** What was selected of a removed endpoint may not be written down as cancelled yet. */
  async function settleRemoved(left: AbortSignal): Promise<void> {
    while (!left.aborted && !(await ports.inTurn(() => ports.write.cancelRemoved({ limit: REPLAY_BATCH_SIZE }))).isDone) {
      if (ports.stopping.aborted) throw stopped(0)
    }
  }

  return { isReady, replayAll, settleRemoved }
}

function stopped(count: number): AppError {
  return new AppError('storage_unavailable', `The relay is stopping. ${count} deliveries were queued again. Ask again for the rest.`, {
    retryAfterMs: 5000,
  })
}
