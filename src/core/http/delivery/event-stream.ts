import type { ServerResponse } from 'node:http'
import type { FeedFollower, FeedPage } from '../../flow/delivery/feed-tail.ts'
import { EdgeError } from '../server/errors.ts'

export interface EventStreamPorts {
  readonly next: FeedFollower
  isOver(): boolean
  /** Aborted when the reader has left, or may no longer read. */
  readonly left: AbortSignal
}

export interface EventStreamOptions {
  /** How often a quiet stream sends a comment. */
  readonly heartbeatMs: number
  /** A reader that takes none of the waiting bytes for this long is disconnected. */
  readonly slowMs: number
}

const HEADERS = {
  'Content-Type': 'text/event-stream',
  // No proxy may cache, compress or buffer the stream, because an event must arrive when it is sent.
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
}
const RECONNECT_MS = 2000

/**
 * Sends the feed as server-sent events. The `id` of an event is its sequence. Comments are heartbeats. Reads a page only when the client has
 * received the last one, so a slow client costs the memory of one page. Rejects if the first page cannot be read. Later failures only end the
 * stream.
 */
export async function streamEvents(res: ServerResponse, ports: EventStreamPorts, options: EventStreamOptions): Promise<void> {
  const { left } = ports
  const { heartbeatMs, slowMs } = options
  let page = await ports.next(0)
  res.writeHead(200, HEADERS)
  res.write(`retry: ${RECONNECT_MS}\n\n`)
  try {
    while (await isTaken(res, framesOf(page), { slowMs, left })) {
      if (ports.isOver() || left.aborted) break
      page = await ports.next(heartbeatMs)
    }
  } finally {
    // Drop unsent bytes now, because a graceful end would keep them in memory until the reader receives them.
    if (res.writableNeedDrain) res.destroy()
    else res.end()
  }
}

const HEARTBEAT = Buffer.from(':\n\n')
const framesMade = new WeakMap<FeedPage, Buffer>()

/** Returns the bytes of a page, which are encoded once for all followers. */
function framesOf(page: FeedPage): Buffer {
  if (page.events.length === 0) return HEARTBEAT
  const made = framesMade.get(page)
  if (made !== undefined) return made
  const frames = Buffer.from(page.events.map(({ sequence, json }) => `id: ${sequence}\ndata: ${json}\n\n`).join(''))
  framesMade.set(page, frames)
  return frames
}

/** Returns whether the reader receives the bytes in time. */
async function isTaken(res: ServerResponse, bytes: Buffer, { slowMs, left }: { slowMs: number; left: AbortSignal }): Promise<boolean> {
  if (res.destroyed || left.aborted) return false
  if (res.write(bytes)) return true
  return await new Promise((resolve) => {
    const settle = (taken: boolean) => () => {
      clearTimeout(timer)
      res.off('drain', taken_).off('close', gone)
      left.removeEventListener('abort', gone)
      resolve(taken)
    }
    const taken_ = settle(true)
    const gone = settle(false)
    const timer = setTimeout(() => res.destroy(), slowMs)
    res.on('drain', taken_).on('close', gone)
    left.addEventListener('abort', gone)
  })
}

/** The slot of a stream of the feed, or of a request that waits for events. Slots are limited, because each costs memory and writes. */
export interface Slot {
  /** Aborted when the slot goes to another app. */
  readonly revoked: AbortSignal
  release(): void
}

interface FollowerSlots {
  /** Throws `overloaded` if all slots are taken and this app can get none from another app. */
  take(app: string): Slot
}

/**
 * Gives out the slots of `limits.feedFollowers`. One app may hold all of them while no other app asks. When all are taken, an app with less
 * than a quarter of them can still get one. It takes the oldest slot of the app with the most slots, if that app has more than a quarter.
 */
export function createFollowerSlots(slotsMax: number): FollowerSlots {
  const shareMax = Math.max(1, Math.floor(slotsMax / 4))
  const held = new Map<string, Set<AbortController>>()
  let taken = 0

  function give(app: string, slot: AbortController): void {
    const slots = held.get(app) ?? new Set()
    held.set(app, slots.add(slot))
    taken += 1
  }

  function release(app: string, slot: AbortController): void {
    const slots = held.get(app)
    if (slots?.delete(slot) !== true) return
    if (slots.size === 0) held.delete(app)
    taken -= 1
  }

  function makeRoomFor(app: string): void {
    const [largest, slots] = [...held].reduce((most, one) => (one[1].size > most[1].size ? one : most), ['', new Set<AbortController>()])
    const [oldest] = slots
    if ((held.get(app)?.size ?? 0) >= shareMax || slots.size <= shareMax || oldest === undefined) {
      throw new EdgeError('overloaded', 'Too many requests follow the feed at once. Ask without wait, or try again later.', {
        retryAfterMs: 5000,
      })
    }
    release(largest, oldest)
    oldest.abort()
  }

  return {
    take(app) {
      if (taken >= slotsMax) makeRoomFor(app)
      const slot = new AbortController()
      give(app, slot)
      return { revoked: slot.signal, release: () => release(app, slot) }
    },
  }
}
