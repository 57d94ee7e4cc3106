import type { FeedPage, FeedTail, PageRequest } from './feed-tail.ts'
import type { Clock, FeedSignal } from './ports.ts'

export interface FollowFeedPorts {
  readonly tail: FeedTail
  readonly signal: FeedSignal
  readonly clock: Pick<Clock, 'monotonic'>
  /** Of many who are woken at once, lets some go on at a time. */
  readonly spread: () => Promise<void>
}

export interface FeedRequest extends PageRequest {
  /** How long to wait for the first, if there is none yet. */
  readonly waitMs: number
  /** Aborted when nobody waits for the answer any more. */
  readonly left: AbortSignal
}

export interface FollowFeed {
  /** Throws `feed_gone` (with the oldest sequence), `feed_rewound` (with the last one) and `storage_unavailable`. */
  follow(request: FeedRequest): Promise<FeedPage>
  /** Whether the relay is about to stop, so that nothing more will come. */
  isOver(): boolean
}

/** Builds the verb behind the feed: what was learnt after a sequence, in sequence; a request may wait until there is something. */
export function createFollowFeed({ tail, signal, clock, spread }: FollowFeedPorts): FollowFeed {
  return {
    async follow({ waitMs, left, after, ...page }) {
      const untilMs = clock.monotonic() + waitMs
      let from = after
      for (;;) {
        const seen = signal.seen()
        const found = await tail.read({ ...page, after: from })
        const leftMs = untilMs - clock.monotonic()
        if (found.events.length > 0 || leftMs <= 0 || left.aborted || signal.isClosed()) {
          if (waitMs > 0) await spread()
          return found
        }
        // What was told of is gone: there may be more behind it.
        const isEnd = found.next === from
        from = found.next
        if (isEnd) await signal.wait(seen, leftMs, left)
      }
    },
    isOver: () => signal.isClosed(),
  }
}
