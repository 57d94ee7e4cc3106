import type { FeedGap } from '../../domain/admin/restore.ts'
import { encodeFeedItem, type FeedSlice } from '../../domain/delivery/feed-entry.ts'
import { AppError } from '../../domain/errors.ts'
import type { Reads } from '../relay.ts'

export interface FeedPage {
  readonly events: readonly EncodedEvent[]
  /** The sequence after which the next page starts. */
  readonly next: number
  /** Whether the feed had no later event when this page was read. */
  readonly ended: boolean
}

export interface EncodedEvent {
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

export interface FeedPagePorts extends Reads<'readFeed'> {
  /** The sequences that restores of the store have skipped; absent: no sequences. */
  readonly gaps?: readonly FeedGap[]
  /** Lets all other waiting work run first. */
  readonly yieldToOthers: () => Promise<unknown>
}

/**
 * How many events are read at once, before other work gets its turn. The first read is smaller, because the page may have room for only a
 * few large events.
 */
export const EVENTS_PER_READ = { most: 25, first: 5 }

export function pageKey({ after, limit, charsMax, inStep }: PageRequest): string {
  return [after, limit, charsMax, inStep].join()
}

export function encodeItem(item: FeedSlice['items'][number]): EncodedEvent {
  return { sequence: item.sequence, json: encodeFeedItem(item) }
}

export function charsOf(events: readonly EncodedEvent[]): number {
  return events.reduce((sum, { json }) => sum + json.length, 0)
}

/** Throws `storage_unavailable`. */
export async function readFeedSlice(reads: FeedPagePorts['reads'], request: { after: number; limit: number }): Promise<FeedSlice> {
  try {
    return await reads.readFeed(request)
  } catch (cause) {
    throw new AppError('storage_unavailable', 'The store cannot be read now.', { cause, retryAfterMs: 5000 })
  }
}
