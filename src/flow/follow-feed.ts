import { AppError } from '../domain/errors.ts'
import { encodeFeedItem } from '../domain/feed-event.ts'
import type { Clock, FeedReading, FeedSignal, ReadSide } from './ports.ts'

/** How many events are read in one go: between two goes others have their turn. */
const READ_AT_ONCE = 25
/** A page ends with the event that brings it over this. */
const PAGE_CHARS_MAX = 512 * 1024

export interface FollowFeedPorts {
  readonly reads: Pick<ReadSide, 'readFeed'>
  readonly signal: FeedSignal
  readonly clock: Pick<Clock, 'monotonic'>
  /** Lets everything else that waits go first. */
  readonly turn: () => Promise<unknown>
}

export interface FeedRequest {
  readonly after: number
  /** The most events. */
  readonly limit: number
  /** How long to wait for the first, if there is none yet. */
  readonly waitMs: number
  /** Aborted when nobody waits for the answer any more. */
  readonly left: AbortSignal
}

export interface FeedPage {
  readonly events: readonly { readonly sequence: number; readonly json: string }[]
  /** Where to go on. */
  readonly next: number
}

export interface FollowFeed {
  /** Throws `feed_gone` (with the oldest sequence) and `storage_unavailable`. */
  follow(request: FeedRequest): Promise<FeedPage>
  /** Whether the relay is about to stop, so that nothing more will come. */
  isOver(): boolean
}

/** Builds the verb behind the feed: what was learnt after a sequence, in sequence; a request may wait until there is something. */
export function createFollowFeed(ports: FollowFeedPorts): FollowFeed {
  const { signal, clock } = ports
  return {
    async follow(request) {
      const untilMs = clock.monotonic() + request.waitMs
      for (;;) {
        const seen = signal.seen()
        const page = await readPage(ports, request)
        const leftMs = untilMs - clock.monotonic()
        if (page.events.length > 0 || leftMs <= 0 || request.left.aborted || signal.isClosed()) return page
        await signal.wait(seen, leftMs, request.left)
      }
    },
    isOver: () => signal.isClosed(),
  }
}

async function readPage({ reads, turn }: FollowFeedPorts, { after, limit }: FeedRequest): Promise<FeedPage> {
  const events: { sequence: number; json: string }[] = []
  let [next, chars] = [after, 0]
  while (events.length < limit) {
    const reading = await readSome(reads, { after: next, limit: Math.min(READ_AT_ONCE, limit - events.length) })
    refuseGone(reading, next)
    for (const item of reading.items) {
      const event = { sequence: item.sequence, json: encodeFeedItem(item) }
      events.push(event)
      chars += event.json.length
      if (chars > PAGE_CHARS_MAX) return { events, next: item.sequence }
    }
    next = reading.next
    if (reading.ended) break
    await turn()
  }
  return { events, next }
}

async function readSome(reads: FollowFeedPorts['reads'], request: { after: number; limit: number }): Promise<FeedReading> {
  try {
    return await reads.readFeed(request)
  } catch (cause) {
    throw new AppError('storage_unavailable', 'The store cannot be read now.', { cause, retryAfterMs: 5000 })
  }
}

/** What is asked for may be gone only up to where the reader is: a hole must never pass for silence. */
function refuseGone({ prunedTo }: FeedReading, after: number): void {
  if (after >= prunedTo) return
  const oldest = prunedTo + 1
  throw new AppError('feed_gone', `Events before sequence ${oldest} are no longer kept: read the histories, then go on from there.`, {
    facts: { oldestSequence: oldest },
  })
}
