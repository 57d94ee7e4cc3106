import type { ServerResponse } from 'node:http'
import type { FeedPage } from '../../flow/delivery/feed-page.ts'
import type { FeedFollower } from '../../flow/delivery/follow-feed.ts'

export interface EventStreamPorts {
  readonly next: FeedFollower
  isOver(): boolean
  /** Throws when who reads may read no longer. */
  readonly admit: () => Promise<unknown>
  readonly left: AbortSignal
}

export interface EventStreamOptions {
  /** A quiet stream says so this often, and who reads is asked for again. */
  readonly heartbeatMs: number
  /** Who takes nothing for this long is cut. */
  readonly slowMs: number
}

const HEADERS = {
  'Content-Type': 'text/event-stream',
  // Neither kept nor packed on its way: an event must be seen when it is sent.
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
}
const RECONNECT_MS = 2000

/**
 * The feed as server-sent events: `id` is the sequence, `data` the event, a comment the heartbeat. What follows is read only once what was
 * sent is taken, so a slow reader costs one page, and one that takes nothing is cut. Rejects before anything is sent when there is no
 * first page; afterwards it only ends.
 */
export async function streamEvents(res: ServerResponse, ports: EventStreamPorts, options: EventStreamOptions): Promise<void> {
  const { left } = ports
  const { heartbeatMs, slowMs } = options
  let page = await ports.next(0)
  res.writeHead(200, HEADERS)
  res.write(`retry: ${RECONNECT_MS}\n\n`)
  let admittedAt = performance.now()
  try {
    while (await isTaken(res, framesOf(page), { slowMs, left })) {
      if (ports.isOver() || left.aborted) break
      page = await ports.next(heartbeatMs)
      if (performance.now() - admittedAt >= heartbeatMs) {
        await ports.admit()
        admittedAt = performance.now()
      }
    }
  } finally {
    // Who has not taken what was sent would keep it until he does.
    if (res.writableNeedDrain) res.destroy()
    else res.end()
  }
}

const HEARTBEAT = Buffer.from(':\n\n')
const framesMade = new WeakMap<FeedPage, Buffer>()

/** The bytes of a page, made once for all who are given it. */
function framesOf(page: FeedPage): Buffer {
  if (page.events.length === 0) return HEARTBEAT
  const made = framesMade.get(page)
  if (made !== undefined) return made
  const frames = Buffer.from(page.events.map(({ sequence, json }) => `id: ${sequence}\ndata: ${json}\n\n`).join(''))
  framesMade.set(page, frames)
  return frames
}

/** Sends; false when nobody takes it. */
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
