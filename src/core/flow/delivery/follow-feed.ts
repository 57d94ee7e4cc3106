import type { Part } from '../relay.ts'
import type { FeedPage, FeedTail, PageRequest } from './feed-tail.ts'
import type { FeedSignal } from './ports.ts'

export interface FollowFeedPorts extends Part<'clock', 'monotonic'> {
  readonly tail: FeedTail
  readonly signal: FeedSignal
  /** Resolves when the reader may continue. If many readers wake at once, only some may continue at a time. */
  readonly spread: () => Promise<void>
}

export interface FeedRequest extends PageRequest {
  /** Aborted when the reader has left. */
  readonly left: AbortSignal
}

/** Returns the next page. Waits up to `waitMs` while there is no event. */
export type FeedFollower = (waitMs: number) => Promise<FeedPage>

export interface FollowFeed {
  /**
   * Starts to follow the feed after `request.after`. The follower throws `feed_gone` (with the oldest sequence of the feed), `feed_rewound`
   * (with its last sequence) and `storage_unavailable`.
   */
  follow(request: FeedRequest): FeedFollower
  /** Whether the relay is stopping, so that nothing more will come. */
  isOver(): boolean
}

export function createFollowFeed({ tail, signal, clock, spread }: FollowFeedPorts): FollowFeed {
  return {
    follow({ left, ...request }) {
      let from = request.after
      // The number of signals when the reader last reached the end of the feed; null: there may be more events. At the end, a reader waits
      // for the next signal before it reads again, so that many readers do not read all the time.
      let seen: number | null = null
      return async (waitMs) => {
        const untilMs = clock.monotonic() + waitMs
        for (;;) {
          if (seen !== null) await signal.wait(seen, Math.max(0, untilMs - clock.monotonic()), left)
          const seenNow = signal.seen()
          const page = await tail.read({ ...request, after: from })
          from = page.next
          seen = page.ended ? seenNow : null
          if (page.events.length === 0 && clock.monotonic() < untilMs && !left.aborted && !signal.isClosed()) continue
          if (waitMs > 0) await spread()
          return page
        }
      }
    },
    isOver: () => signal.isClosed(),
  }
}
