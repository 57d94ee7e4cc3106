import type { ServerResponse } from 'node:http'
import type { FeedPage, FeedRequest } from '../flow/follow-feed.ts'

export interface EventStreamPorts {
  follow(request: FeedRequest): Promise<FeedPage>
  isOver(): boolean
  /** Throws when who reads may read no longer. */
  readonly admit: () => Promise<unknown>
  readonly left: AbortSignal
}

export interface EventStreamOptions {
  readonly after: number
  readonly limit: number
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
  const { limit, heartbeatMs } = options
  let page = await ports.follow({ after: options.after, limit, waitMs: 0, left })
  res.writeHead(200, HEADERS)
  res.flushHeaders()
  let text = `retry: ${RECONNECT_MS}\n\n${framesOf(page)}`
  let admittedAt = performance.now()
  try {
    while (await isTaken(res, text, options.slowMs)) {
      if (ports.isOver() || left.aborted) break
      page = await ports.follow({ after: page.next, limit, waitMs: heartbeatMs, left })
      text = page.events.length === 0 ? ':\n\n' : framesOf(page)
      if (performance.now() - admittedAt >= heartbeatMs) {
        await ports.admit()
        admittedAt = performance.now()
      }
    }
  } finally {
    res.end()
  }
}

function framesOf({ events }: FeedPage): string {
  return events.map(({ sequence, json }) => `id: ${sequence}\ndata: ${json}\n\n`).join('')
}

/** Sends; false when nobody takes it. */
async function isTaken(res: ServerResponse, text: string, slowMs: number): Promise<boolean> {
  if (res.destroyed) return false
  if (res.write(text)) return true
  return await new Promise((resolve) => {
    const settle = (taken: boolean) => () => {
      clearTimeout(timer)
      res.off('drain', taken_).off('close', gone)
      resolve(taken)
    }
    const taken_ = settle(true)
    const gone = settle(false)
    const timer = setTimeout(() => res.destroy(), slowMs)
    res.on('drain', taken_).on('close', gone)
  })
}
