import type { FeedSlice } from '../../domain/delivery/feed-entry.ts'
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

export interface FeedPagePorts {
  readonly reads: Pick<ReadSide, 'readFeed'>
  /** Lets everything else that waits go first. */
  readonly yieldToOthers: () => Promise<unknown>
}

/** How many events are read in one go: between two goes others have their turn. Of unknown size, fewer: they may not fit on the page. */
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

export async function readFeedSlice(reads: FeedPagePorts['reads'], request: { after: number; limit: number }): Promise<FeedSlice> {
  try {
    return await reads.readFeed(request)
  } catch (cause) {
    throw new AppError('storage_unavailable', 'The store cannot be read now.', { cause, retryAfterMs: 5000 })
  }
}
