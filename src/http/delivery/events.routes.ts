import type Router from '@koa/router'
import type { Context } from 'koa'
import { AppError } from '../../domain/errors.ts'
import type { FeedPage } from '../../flow/delivery/feed-page.ts'
import type { FollowFeed } from '../../flow/delivery/follow-feed.ts'
import type { Log } from '../../flow/ports.ts'
import { createApiRoutes } from '../server/api-routes.ts'
import type { Authorize, HoldAccess } from '../server/authorize.ts'
import { headerValues } from '../server/header-values.ts'
import { count, durationMs, query, whole } from '../server/query.ts'
import { streamEvents } from './event-stream.ts'
import { createFollowerPlaces } from './follower-places.ts'

/** `wait` is bounded below the server's timeout for inactive connections. */
const QUERY = query({ after: count.default(0), limit: whole(1, 500).default(100), wait: durationMs(50).default(0) })
const PAGE_CHARS_MAX = 512 * 1024
/** A slow reader may keep one such page in memory. */
const STREAM_PAGE = { limit: 500, charsMax: 64 * 1024, inStep: true }
const STREAM = { heartbeatMs: 15_000, slowMs: 15_000 }
const NUMBER = /^\d{1,15}$/

export interface EventsRouteOptions {
  readonly followFeed: FollowFeed
  /** `limits.feedFollowers`: streams and waiting requests at once. */
  readonly feedFollowersMax: number
  readonly authorize: Authorize
  readonly holdAccess: HoldAccess
  readonly log: Log
}

/** The feed of all changes, in sequence: a page, a long poll, or a stream. */
export function eventsRoutes({ followFeed, feedFollowersMax, authorize, holdAccess, log }: EventsRouteOptions): Router {
  const routes = createApiRoutes(authorize)
  const places = createFollowerPlaces(feedFollowersMax)

  /** Runs `work` in a follower's place; its signal aborts when the client disconnects, loses the place or may no longer have it. */
  async function following(ctx: Context, app: string, work: (left: AbortSignal) => Promise<void>): Promise<void> {
    const place = places.take(app)
    const leaving = new AbortController()
    const leave = () => leaving.abort()
    ctx.res.once('close', leave)
    place.revoked.addEventListener('abort', leave)
    let release = () => {}
    try {
      release = await holdAccess(ctx, 'status', leave)
      await work(leaving.signal)
    } finally {
      release()
      place.release()
      ctx.res.off('close', leave)
    }
  }

  async function stream(ctx: Context, after: number, left: AbortSignal): Promise<void> {
    ctx.status = 200
    try {
      const next = followFeed.follow({ ...STREAM_PAGE, after, left })
      await streamEvents(ctx.res, { next, isOver: followFeed.isOver, left }, STREAM)
    } catch (err) {
      if (!ctx.res.headersSent) throw err
      log.debug({ err }, 'a stream of events ended early')
    }
    // The stream wrote the answer itself.
    ctx.respond = false
  }

  routes.add('get', '/relay/events', {
    scope: 'status',
    query: QUERY,
    answer: async (ctx, { app: { username }, query: { after, limit, wait } }) => {
      if (ctx.method === 'GET' && ctx.accepts('application/json', 'text/event-stream') === 'text/event-stream') {
        const from = lastEventId(ctx) ?? after
        await following(ctx, username, (left) => stream(ctx, from, left))
        return
      }
      const answer = async (left: AbortSignal) => {
        const page = await followFeed.follow({ after, limit, charsMax: PAGE_CHARS_MAX, inStep: false, left })(wait)
        // Access may have ended while it waited.
        if (left.aborted) await authorize(ctx, 'status')
        presentPage(ctx, page)
      }
      // A plain page takes no follower's place.
      if (wait === 0) await answer(new AbortController().signal)
      else await following(ctx, username, answer)
    },
  })
  return routes.router
}

const bodiesMade = new WeakMap<FeedPage, Buffer>()

function presentPage(ctx: Context, page: FeedPage): void {
  const body = bodiesMade.get(page) ?? Buffer.from(`{"events":[${page.events.map(({ json }) => json).join(',')}],"next":${page.next}}`)
  bodiesMade.set(page, body)
  ctx.status = 200
  ctx.body = body
  ctx.set('Content-Type', 'application/json')
  ctx.set('Cache-Control', 'no-store')
}

/** Where a reconnecting reader left off; it overrides `after`, which stays in the reader's URL. */
function lastEventId(ctx: Context): number | null {
  const [value, ...more] = headerValues(ctx.req, 'last-event-id')
  if (value === undefined || value === '') return null
  if (!NUMBER.test(value) || more.length > 0)
    throw new AppError('bad_request', 'Last-Event-ID must be one sequence, a whole number of at least 0.')
  return Number(value)
}
