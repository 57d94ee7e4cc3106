import type { ServerResponse } from 'node:http'
import type { FeedPage } from '../../flow/delivery/feed-tail.ts'
import type { FeedFollower } from '../../flow/delivery/follow-feed.ts'

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
