import { type FeedGap, gapAt } from '../../domain/admin/restore.ts'
import type { FeedSlice } from '../../domain/delivery/feed-entry.ts'
import { AppError } from '../../domain/errors.ts'
import {
  charsOf,
  type EncodedEvent,
  EVENTS_PER_READ,
  encodeItem,
  type FeedPage,
  type FeedPagePorts,
  type PageRequest,
  pageKey,
  readFeedSlice,
} from './feed-page.ts'

/** Reads pages of the feed from the store. Readers who want the same page at the same time can share one read. */
export interface StoredPages {
  /** Returns this page if it is just being read for another reader. */
  underWay(request: PageRequest): Promise<FeedPage> | undefined
  /** Returns the page if it was read recently and did not reach the end of the feed. */
  recall(request: PageRequest): FeedPage | undefined
  /** Throws `feed_gone`, `feed_rewound` and `storage_unavailable`. */
  find(request: PageRequest): Promise<FeedPage>
}

/** How many characters of recently read pages are kept. After an outage many readers return, and read the same pages one after another. */
const RECENT_CHARS_MAX = 4 * 1024 * 1024
/** A page that is read `inStep` ends at a multiple of this number. So readers at different places soon want the same pages. */
const STEP = 128

/** @param onEnd called with each page that reaches the end of the feed. */
export function createStoredPages(ports: FeedPagePorts, onEnd: (request: PageRequest, page: FeedPage) => void): StoredPages {
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
    underWay: (request) => underWay.get(pageKey(request)),
    recall: (request) => recent.get(pageKey(request)),
    async find(request) {
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
export function refuseSkipped(gaps: readonly FeedGap[], after: number): void {
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
