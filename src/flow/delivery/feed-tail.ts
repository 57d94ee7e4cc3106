import type { FeedReading } from '../../domain/delivery/feed-entry.ts'
import { encodeFeedItem } from '../../domain/delivery/feed-event.ts'
import { AppError } from '../../domain/errors.ts'
import type { ReadSide } from '../read-side.ts'

export interface FeedPage {
  readonly events: readonly EncodedEvent[]
  /** Where to go on. */
  readonly next: number
  /** Whether there was no more at that moment. */
  readonly ended: boolean
}

export interface EncodedEvent {
  readonly sequence: number
  readonly json: string
}

export interface PageRequest {
  readonly after: number
  /** The most events. */
  readonly limit: number
  /** A page ends with the event that brings it over this. */
  readonly charsMax: number
  /** Whether it may end where others' pages end, so that readers who began at different places come to read the same ones. */
  readonly inStep: boolean
}

export interface FeedTailPorts {
  readonly reads: Pick<ReadSide, 'readFeed'>
  /** Lets everything else that waits go first. */
  readonly turn: () => Promise<unknown>
}

export interface FeedTail {
  /**
   * What was committed after a sequence when this was called, or the beginning of it. Those at one place are given one and the same page, so
   * that what is made of it can be kept with it. Throws `feed_gone`, `feed_rewound` and `storage_unavailable`.
   */
  read(request: PageRequest): Promise<FeedPage>
}

/** How many events are read in one go: between two goes others have their turn. Of unknown size, fewer: they may not fit on the page. */
const READ_AT_ONCE = { most: 25, first: 5 }
/** How many goes the tail is moved on at once; whoever wants more asks again. */
const GOES_MAX = 20
/** How much of the end of the feed is kept encoded: some seconds of a carrier's rush. */
const KEPT_CHARS_MAX = 8 * 1024 * 1024
const KEPT_PAGES_MAX = 16
/** How much is kept of what was last read further back: of many who come back at once some are a little later than others. */
const RECENT_CHARS_MAX = 4 * 1024 * 1024
/** Pages in step end at multiples of this sequence: about what a stream is sent at once. */
const STEP = 128

/** Everything after `from` up to `to`, encoded. */
interface Kept {
  readonly from: number
  readonly to: number
  readonly events: readonly EncodedEvent[]
  readonly chars: number
}

/**
 * Reads the feed for all who follow it. Its end is kept, each event derived and encoded once however many are sent it; who is further back
 * reads pages of the store until he meets the end. An event may so be told as it stood some seconds ago: what changed since comes after it.
 */
export function createFeedTail({ reads, turn }: FeedTailPorts): FeedTail {
  let kept: Kept | null = null
  let moving: Promise<void> | null = null
  let movingNext: Promise<void> | null = null
  const pages = new Map<string, FeedPage>()
  /** Pages of the store that are being read, and those that were last. */
  const underWay = new Map<string, Promise<FeedPage>>()
  const recent = new Map<string, FeedPage>()
  let recentChars = 0

  function keep(next: Kept): void {
    kept = next.chars > KEPT_CHARS_MAX ? newerHalf(next) : next
    pages.clear()
  }

  /** Looks for what was committed since. Joins no look that has begun before: it may have missed what whoever asks now knows of. */
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
    for (let go = 0; go < GOES_MAX && kept !== null; go++) {
      const before: Kept = kept
      const reading = await readSome(reads, { after: before.to, limit: READ_AT_ONCE.most })
      // Meanwhile somebody else has moved it, perhaps by a look that began before.
      if (kept !== before) continue
      if (reading.prunedTo > before.to || reading.last < before.to) {
        kept = null
        return
      }
      if (reading.prunedTo > before.from || reading.next > before.to) {
        const more = reading.items.map(encode)
        const from = Math.max(before.from, reading.prunedTo)
        keep({ from, to: reading.next, events: [...before.events, ...more], chars: before.chars + charsOf(more) })
      }
      if (reading.ended) return
      await turn()
    }
  }

  async function fromTail(request: PageRequest): Promise<FeedPage | null> {
    if (!holds(kept, request.after)) return null
    await moveOn()
    if (!holds(kept, request.after)) return null
    const key = keyOf(request)
    const page = pages.get(key) ?? pageOf(kept, request)
    if (pages.size >= KEPT_PAGES_MAX) pages.clear()
    pages.set(key, page)
    return page
  }

  async function fromStore(key: string, request: PageRequest): Promise<FeedPage> {
    const finding = findPage(request)
    underWay.set(key, finding)
    try {
      const found = await finding
      if (!found.ended) keepRecent(key, found)
      // Here the feed ends, and not where the tail did: whoever goes on from here is to find it kept.
      if (found.ended && (kept === null || found.next > kept.to))
        keep({ from: request.after, to: found.next, events: found.events, chars: charsOf(found.events) })
      return found
    } finally {
      if (underWay.get(key) === finding) underWay.delete(key)
    }
  }

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

  async function findPage({ after, limit, charsMax, inStep }: PageRequest): Promise<FeedPage> {
    const events: EncodedEvent[] = []
    let [next, chars] = [after, 0]
    while (events.length < limit) {
      const fitting = events.length === 0 ? READ_AT_ONCE.first : Math.ceil(((charsMax - chars + 1) * events.length) / chars)
      const reading = await readSome(reads, { after: next, limit: Math.min(READ_AT_ONCE.most, fitting, limit - events.length) })
      refuseElsewhere(reading, next)
      for (const item of reading.items) {
        const begun = events[0]?.sequence
        if (inStep && begun !== undefined && stepOf(item.sequence) > stepOf(begun)) return { events, next, ended: false }
        const event = encode(item)
        events.push(event)
        next = item.sequence
        chars += event.json.length
        if (chars > charsMax) return { events, next, ended: false }
      }
      next = reading.next
      if (reading.ended) return { events, next, ended: true }
      await turn()
    }
    return { events, next, ended: false }
  }

  return {
    async read(request) {
      const key = keyOf(request)
      const known = (await fromTail(request)) ?? recent.get(key)
      if (known !== undefined) return known
      const another = underWay.get(key)
      if (another === undefined) return await fromStore(key, request)
      const found = await another
      // One that found the end may have missed what was committed since; but now the end is kept.
      return found.ended ? ((await fromTail(request)) ?? (await fromStore(key, request))) : found
    },
  }
}

function keyOf({ after, limit, charsMax, inStep }: PageRequest): string {
  return [after, limit, charsMax, inStep].join()
}

function stepOf(sequence: number): number {
  return Math.ceil(sequence / STEP)
}

function encode(item: FeedReading['items'][number]): EncodedEvent {
  return { sequence: item.sequence, json: encodeFeedItem(item) }
}

function holds(kept: Kept | null, after: number): kept is Kept {
  return kept !== null && after >= kept.from && after <= kept.to
}

/** Half, so that it is not done again for every event. */
function newerHalf({ to, events }: Kept): Kept {
  const gone = Math.ceil(events.length / 2)
  const newer = events.slice(gone)
  return { from: events[gone - 1]?.sequence ?? to, to, events: newer, chars: charsOf(newer) }
}

function charsOf(events: readonly EncodedEvent[]): number {
  return events.reduce((sum, { json }) => sum + json.length, 0)
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

async function readSome(reads: FeedTailPorts['reads'], request: { after: number; limit: number }): Promise<FeedReading> {
  try {
    return await reads.readFeed(request)
  } catch (cause) {
    throw new AppError('storage_unavailable', 'The store cannot be read now.', { cause, retryAfterMs: 5000 })
  }
}

/**
 * What is asked for may be gone only up to where the reader is, and a reader is nowhere ahead of the end: neither a hole nor a store that is
 * older than he may pass for silence.
 */
function refuseElsewhere({ prunedTo, last }: FeedReading, after: number): void {
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
