import type { Clock } from '../ports.ts'
import type { FeedPage, PageRequest } from './feed-page.ts'
import type { FeedTail } from './feed-tail.ts'
import type { FeedSignal } from './ports.ts'

export interface FollowFeedPorts {
  readonly tail: FeedTail
  readonly signal: FeedSignal
  readonly clock: Pick<Clock, 'monotonic'>
  /** Of many who are woken at once, lets some go on at a time. */
  readonly spread: () => Promise<void>
}

export interface FeedRequest extends PageRequest {
  /** Aborted when nobody waits for the answer any more. */
  readonly left: AbortSignal
}

/** Gives page after page, each behind the one before; waits so long for one that holds something, if there is none yet. */
export type FeedFollower = (waitMs: number) => Promise<FeedPage>

export interface FollowFeed {
  /** What it gives throws `feed_gone` (with the oldest sequence), `feed_rewound` (with the last one) and `storage_unavailable`. */
  follow(request: FeedRequest): FeedFollower
  /** Whether the relay is about to stop, so that nothing more will come. */
  isOver(): boolean
}

/** Builds the verb behind the feed: what was learnt after a sequence, in sequence; a request may wait until there is something. */
export function createFollowFeed({ tail, signal, clock, spread }: FollowFeedPorts): FollowFeed {
  return {
    follow({ left, ...request }) {
      let from = request.after
      // How often it was told when the end was last looked at; null: there may be more. Who has seen the end waits for the next word of more
      // before he looks again: with many, some would else look, and be sent to, all the time.
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
