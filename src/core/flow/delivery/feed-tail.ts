import { type FeedGap, gapAt } from '../../domain/admin/restore.ts'
import { encodeFeedItem, type FeedSlice } from '../../domain/delivery/feed-entry.ts'
import { AppError } from '../../domain/errors.ts'
import type { FeedSignal } from '../ports.ts'
import type { Part, Reads } from '../relay-part.ts'

export interface FeedPage {
  readonly events: readonly EncodedEvent[]
  /** The sequence after which the next page starts. */
  readonly next: number
  /** Whether the feed had no later event when this page was read. */
  readonly ended: boolean
}

interface EncodedEvent {
  readonly sequence: number
  readonly json: string
}

export interface PageRequest {
  readonly after: number
  readonly limit: number
  /** The page ends with the event that makes it longer than this many characters. */
  readonly charsMax: number
  /**
   * Whether the page may end early, at a sequence where pages of other readers end. Then readers who start at different sequences soon ask
   * for the same pages, and each page is read only once.
   */
  readonly inStep: boolean
}

interface FeedPagePorts extends Reads<'readFeed'> {
  /** The sequences that restores of the store have skipped; absent: no sequences. */
  readonly gaps?: readonly FeedGap[]
  /** Lets all other waiting work run first. */
  readonly yieldToOthers: () => Promise<unknown>
}

/**
 * How many events are read at once, before other work gets its turn. The first read is smaller, because the page may have room for only a
 * few large events.
 */
const EVENTS_PER_READ = { most: 50, first: 5 }

function pageKey({ after, limit, charsMax, inStep }: PageRequest): string {
  return [after, limit, charsMax, inStep].join()
}

function encodeItem(item: FeedSlice['items'][number]): EncodedEvent {
  return { sequence: item.sequence, json: encodeFeedItem(item) }
}

function charsOf(events: readonly EncodedEvent[]): number {
  return events.reduce((sum, { json }) => sum + json.length, 0)
}

/** Throws `storage_unavailable`. */
async function readFeedSlice(reads: FeedPagePorts['reads'], request: { after: number; limit: number }): Promise<FeedSlice> {
  try {
    return await reads.readFeed(request)
  } catch (cause) {
    throw new AppError('storage_unavailable', 'The store cannot be read now.', { cause, retryAfterMs: 5000 })
  }
}

export type FeedTail = ReturnType<typeof createFeedTail>

/** One call extends the tail by at most this many reads of the store. Readers who want more events ask again. */
const READS_MAX = 20
/** How many characters of JSON are kept in memory. They suffice for some seconds at the carrier's peak. */
const KEPT_CHARS_MAX = 8 * 1024 * 1024
const KEPT_PAGES_MAX = 16
/** The encoded events with sequences above `from` and up to `to`. */
interface Kept {
  readonly from: number
  readonly to: number
  readonly events: readonly EncodedEvent[]
  readonly chars: number
}

/**
 * Reads the feed for all its readers. The end of the feed is kept in memory, so each new event is read and encoded once for all readers.
 * Readers who are further back read pages from the store until they reach the part in memory.
 *
 * An event is shown as it was when it was first read. Later changes follow as separate events.
 */
export function createFeedTail(ports: FeedPagePorts) {
  let tail = createReads(ports)
  return {
    /**
     * Reads the next events after a sequence. A page that reaches the end of the feed has all events that were committed before the call. Readers
     * at the same sequence get the same page object, so a caller can use it as the key of a cache, for example of encoded pages. Throws
     * `feed_gone`, `feed_rewound` and `storage_unavailable`.
     */
    read: (request: PageRequest): Promise<FeedPage> => tail.read(request),
    /** Drops the pages in memory. Call it when the store may have lost their events. */
    forget() {
      // Reads that are running may still fill the old cache, so it must not be used any more.
      tail = createReads(ports)
    },
  }
}

function createReads(ports: FeedPagePorts): Pick<FeedTail, 'read'> {
  const { reads, yieldToOthers } = ports
  let kept: Kept | null = null
  let moving: Promise<void> | null = null
  let movingNext: Promise<void> | null = null
  const pages = new Map<string, FeedPage>()
  const stored = createStoredPages(ports, ({ after }, { events, next }) => {
    // Other readers will continue from this page, which reaches the end of the feed.
    if (kept === null || next > kept.to) keep({ from: after, to: next, events, chars: charsOf(events) })
  })

  function keep(next: Kept): void {
    kept = next.chars > KEPT_CHARS_MAX ? newerHalf(next) : next
    pages.clear()
  }

  /**
   * Extends the tail by later commits. A read that is running may miss a commit that the caller knows of. So the caller waits for a second read
   * after it.
   */
  function moveOn(): Promise<void> {
    if (moving !== null) {
      movingNext ??= moving.then(startMoving, startMoving)
      return movingNext
    }
    return startMoving()
  }

  function startMoving(): Promise<void> {
    movingNext = null
    moving = move().finally(() => {
      moving = null
    })
    return moving
  }

  async function move(): Promise<void> {
    for (let go = 0; go < READS_MAX && kept !== null; go++) {
      const before: Kept = kept
      const reading = await readFeedSlice(reads, { after: before.to, limit: EVENTS_PER_READ.most })
      // Something else has changed the tail meanwhile, for example an earlier read that ended late.
      if (kept !== before) continue
      const after = movedOn(before, reading)
      if (after === null) kept = null
      else if (after !== before) keep(after)
      if (reading.ended) return
      await yieldToOthers()
    }
  }

  async function fromTail(request: PageRequest): Promise<FeedPage | null> {
    if (!holds(kept, request.after)) return null
    await moveOn()
    if (!holds(kept, request.after)) return null
    const key = pageKey(request)
    const page = pages.get(key) ?? pageOf(kept, request)
    if (pages.size >= KEPT_PAGES_MAX) pages.clear()
    pages.set(key, page)
    return page
  }

  return {
    async read(request) {
      refuseSkipped(ports.gaps ?? [], request.after)
      const known = (await fromTail(request)) ?? stored.recall(request)
      if (known !== undefined) return known
      const another = stored.underWay(request)
      if (another === undefined) return await stored.find(request)
      const found = await another
      // The other reader asked earlier, so what was committed since then may be missing at the end. The end is in memory now: look there.
      return found.ended ? ((await fromTail(request)) ?? (await stored.find(request))) : found
    },
  }
}

function holds(kept: Kept | null, after: number): kept is Kept {
  return kept !== null && after >= kept.from && after <= kept.to
}

/** Adds newly read events to the tail. Null: the store may have lost or deleted events of the tail, so the tail must be dropped. */
function movedOn(before: Kept, { prunedTo, last, next, items }: FeedSlice): Kept | null {
  if (prunedTo > before.to || last < before.to) return null
  // The kept events may be about the erased parcel.
  if (items.some(({ kind }) => kind === 'erased')) return null
  if (prunedTo <= before.from && next <= before.to) return before
  const more = items.map(encodeItem)
  return { from: Math.max(before.from, prunedTo), to: next, events: [...before.events, ...more], chars: before.chars + charsOf(more) }
}

function newerHalf({ to, events }: Kept): Kept {
  const gone = Math.ceil(events.length / 2)
  const newer = events.slice(gone)
  return { from: events[gone - 1]?.sequence ?? to, to, events: newer, chars: charsOf(newer) }
}

function pageOf({ to, events }: Kept, { after, limit, charsMax }: PageRequest): FeedPage {
  const first = firstAfter(events, after)
  let [end, chars] = [first, 0]
  while (end < events.length && end - first < limit && chars <= charsMax) chars += events[end++]?.json.length ?? 0
  const ended = end === events.length
  return { events: events.slice(first, end), next: ended ? to : (events[end - 1]?.sequence ?? after), ended }
}

function firstAfter(events: readonly EncodedEvent[], after: number): number {
  let [low, high] = [0, events.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((events[middle]?.sequence ?? 0) <= after) low = middle + 1
    else high = middle
  }
  return low
}

/** How many characters of recently read pages are kept. After an outage many readers return, and read the same pages one after another. */
const RECENT_CHARS_MAX = 4 * 1024 * 1024
/** A page that is read `inStep` ends at a multiple of this number. So readers at different places soon want the same pages. */
const STEP = 128

/** @param onEnd called with each page that reaches the end of the feed. */
function createStoredPages(ports: FeedPagePorts, onEnd: (request: PageRequest, page: FeedPage) => void) {
  const underWay = new Map<string, Promise<FeedPage>>()
  const recent = new Map<string, FeedPage>()
  let recentChars = 0

  function keepRecent(key: string, page: FeedPage): void {
    if (recent.has(key)) return
    recent.set(key, page)
    recentChars += charsOf(page.events)
    for (const [oldest, { events }] of recent) {
      if (recentChars <= RECENT_CHARS_MAX) break
      recent.delete(oldest)
      recentChars -= charsOf(events)
    }
  }

  return {
    /** Returns this page if it is just being read for another reader. */
    underWay: (request: PageRequest): Promise<FeedPage> | undefined => underWay.get(pageKey(request)),
    /** Returns the page if it was read recently and did not reach the end of the feed. */
    recall: (request: PageRequest): FeedPage | undefined => recent.get(pageKey(request)),
    /** Throws `feed_gone`, `feed_rewound` and `storage_unavailable`. */
    async find(request: PageRequest): Promise<FeedPage> {
      const key = pageKey(request)
      const finding = readPage(ports, request)
      underWay.set(key, finding)
      try {
        const found = await finding
        if (found.ended) onEnd(request, found)
        else keepRecent(key, found)
        return found
      } finally {
        if (underWay.get(key) === finding) underWay.delete(key)
      }
    },
  }
}

async function readPage({ reads, yieldToOthers }: FeedPagePorts, { after, limit, charsMax, inStep }: PageRequest): Promise<FeedPage> {
  const events: EncodedEvent[] = []
  let [next, chars] = [after, 0]
  while (events.length < limit) {
    const fitting = events.length === 0 ? EVENTS_PER_READ.first : Math.ceil(((charsMax - chars + 1) * events.length) / chars)
    const reading = await readFeedSlice(reads, { after: next, limit: Math.min(EVENTS_PER_READ.most, fitting, limit - events.length) })
    refuseOutside(reading, next)
    for (const item of reading.items) {
      const begun = events[0]?.sequence
      if (inStep && begun !== undefined && stepOf(item.sequence) > stepOf(begun)) return { events, next, ended: false }
      const event = encodeItem(item)
      events.push(event)
      next = item.sequence
      chars += event.json.length
      if (chars > charsMax) return { events, next, ended: false }
    }
    next = reading.next
    if (reading.ended) return { events, next, ended: true }
    await yieldToOthers()
  }
  return { events, next, ended: false }
}

/** Throws if a reader has read events that a restore of the store has since removed. */
function refuseSkipped(gaps: readonly FeedGap[], after: number): void {
  const gap = gapAt(gaps, after)
  if (gap === null) return
  throw new AppError(
    'feed_rewound',
    `The store was restored from a backup that ends at sequence ${gap.from}: you have read events that it does not hold. See docs/feed.md.`,
    { facts: { lastSequence: gap.from } },
  )
}

function stepOf(sequence: number): number {
  return Math.ceil(sequence / STEP)
}

/**
 * Throws if the requested events were deleted, or if the reader has read further than this store goes, for example after a restore. An empty
 * page would hide that from the reader.
 */
function refuseOutside({ prunedTo, last }: FeedSlice, after: number): void {
  if (after > last) {
    throw new AppError(
      'feed_rewound',
      `The last sequence is ${last}: you have read events that this store does not hold. See docs/feed.md.`,
      {
        facts: { lastSequence: last },
      },
    )
  }
  if (after >= prunedTo) return
  const oldest = prunedTo + 1
  throw new AppError('feed_gone', `Events before sequence ${oldest} are no longer kept: read the histories, then go on from there.`, {
    facts: { oldestSequence: oldest },
  })
}

interface FollowFeedPorts extends Part<'clock', 'monotonic'> {
  readonly tail: FeedTail
  readonly signal: FeedSignal
  /** Resolves when the reader may continue. If many readers wake at once, only some may continue at a time. */
  readonly spread: () => Promise<void>
}

interface FeedRequest extends PageRequest {
  /** Aborted when the reader has left. */
  readonly left: AbortSignal
}

/** Returns the next page. Waits up to `waitMs` while there is no event. */
export type FeedFollower = (waitMs: number) => Promise<FeedPage>

export type FollowFeed = ReturnType<typeof createFollowFeed>

export function createFollowFeed({ tail, signal, clock, spread }: FollowFeedPorts) {
  return {
    /**
     * Starts to follow the feed after `request.after`. The follower throws `feed_gone` (with the oldest sequence of the feed), `feed_rewound`
     * (with its last sequence) and `storage_unavailable`.
     */
    follow({ left, ...request }: FeedRequest): FeedFollower {
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
    /** Whether the relay is stopping, so that nothing more will come. */
    isOver: () => signal.isClosed(),
  }
}
