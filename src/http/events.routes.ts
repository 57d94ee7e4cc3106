import type Router from '@koa/router'
import type { Context } from 'koa'
import { AppError } from '../domain/errors.ts'
import type { FollowFeed } from '../flow/follow-feed.ts'
import type { Log } from '../flow/ports.ts'
import { createApiRoutes } from './api-routes.ts'
import type { Authorize } from './authorize.ts'
import { EdgeError } from './errors.ts'
import { streamEvents } from './event-stream.ts'
import { headerValues } from './header-values.ts'
import { count, durationMs, query, whole } from './query.ts'

/** `wait`: less than what a connection may be silent for. */
const QUERY = query({ after: count.default(0), limit: whole(1, 500).default(100), wait: durationMs(50).default(0) })
/** How many may wait at once, streams included. */
const FOLLOWERS_MAX = 100
const STREAM = { limit: 100, heartbeatMs: 15_000, slowMs: 15_000 }
const NUMBER = /^\d{1,15}$/

export interface EventsRouteOptions {
  readonly followFeed: FollowFeed
  readonly authorize: Authorize
  readonly log: Log
}

/** The feed of everything learnt, in sequence (CONTRACT): a page, a page to wait for, or a stream that stays open. */
export function eventsRoutes({ followFeed, authorize, log }: EventsRouteOptions): Router {
  const routes = createApiRoutes(authorize)
  let followers = 0

  /** Runs what may wait, if there is room for one more, and tells it when who asked has left. */
  async function following(ctx: Context, work: (left: AbortSignal) => Promise<void>): Promise<void> {
    if (followers >= FOLLOWERS_MAX) throw new EdgeError('overloaded', 'Too many follow the feed at once.', { retryAfterMs: 5000 })
    const leaving = new AbortController()
    const leave = () => leaving.abort()
    followers += 1
    ctx.res.once('close', leave)
    try {
      await work(leaving.signal)
    } finally {
      followers -= 1
      ctx.res.off('close', leave)
    }
  }

  routes.add('get', '/relay/events', {
    scope: 'status',
    query: QUERY,
    answer: async (ctx, { query: { after, limit, wait } }) => {
      if (ctx.method === 'GET' && ctx.accepts('application/json', 'text/event-stream') === 'text/event-stream') {
        const from = lastEventId(ctx) ?? after
        await following(ctx, async (left) => {
          ctx.status = 200
          try {
            await streamEvents(ctx.res, { ...followFeed, left, admit: () => authorize(ctx, 'status') }, { ...STREAM, after: from })
          } catch (err) {
            if (!ctx.res.headersSent) throw err
            log.debug({ err }, 'a stream of events ended early')
          }
          // It was answered here, and not by the framework.
          ctx.respond = false
        })
        return
      }
      await following(ctx, async (left) => {
        const { events, next } = await followFeed.follow({ after, limit, waitMs: wait, left })
        ctx.status = 200
        ctx.body = `{"events":[${events.map(({ json }) => json).join(',')}],"next":${next}}`
        ctx.set('Content-Type', 'application/json')
        ctx.set('Cache-Control', 'no-store')
      })
    },
  })
  return routes.router
}

/** What a reader that comes back has seen last; it knows better than the address it was first given. */
function lastEventId(ctx: Context): number | null {
  const [value, ...more] = headerValues(ctx.req, 'last-event-id')
  if (value === undefined || value === '') return null
  if (!NUMBER.test(value) || more.length > 0)
    throw new AppError('bad_request', 'Last-Event-ID must be one sequence: a whole number from 0.')
  return Number(value)
}
