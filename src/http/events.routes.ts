import Router from '@koa/router'
import type { Context } from 'koa'
import { parseDuration } from '../domain/duration.ts'
import { AppError } from '../domain/errors.ts'
import type { FollowFeed } from '../flow/follow-feed.ts'
import type { Log } from '../flow/ports.ts'
import type { Authorize } from './authorize.ts'
import { EdgeError } from './errors.ts'
import { streamEvents } from './event-stream.ts'
import { headerValues } from './header-values.ts'

const LIMIT = { least: 1, most: 500, usual: 100 }
/** Less than what a connection may be silent for. */
const WAIT_MS_MAX = 50_000
/** How many may wait at once, streams included. */
const FOLLOWERS_MAX = 100
const STREAM = { limit: 100, heartbeatMs: 15_000, slowMs: 15_000 }
const NUMBER = /^\d{1,15}$/
const PARAMETERS = ['after', 'limit', 'wait']

export interface EventsRouteOptions {
  readonly followFeed: FollowFeed
  readonly authorize: Authorize
  readonly log: Log
}

/** The feed of everything learnt, in sequence (CONTRACT): a page, a page to wait for, or a stream that stays open. */
export function eventsRoutes({ followFeed, authorize, log }: EventsRouteOptions): Router {
  const router = new Router({ strict: true, sensitive: true })
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

  router.get('/relay/events', async (ctx) => {
    await authorize(ctx, 'status')
    const asked = readParameters(ctx.querystring)
    if (ctx.method === 'GET' && ctx.accepts('application/json', 'text/event-stream') === 'text/event-stream') {
      const after = lastEventId(ctx) ?? asked.after
      await following(ctx, async (left) => {
        ctx.status = 200
        try {
          await streamEvents(ctx.res, { ...followFeed, left, admit: () => authorize(ctx, 'status') }, { ...STREAM, after })
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
      const { events, next } = await followFeed.follow({ ...asked, left })
      ctx.status = 200
      ctx.body = `{"events":[${events.map(({ json }) => json).join(',')}],"next":${next}}`
      ctx.set('Content-Type', 'application/json')
      ctx.set('Cache-Control', 'no-store')
    })
  })
  return router
}

interface Parameters {
  readonly after: number
  readonly limit: number
  readonly waitMs: number
}

function readParameters(query: string): Parameters {
  const given = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(query)) {
    if (!PARAMETERS.includes(name)) throw badParameter(name, `There is no parameter of this name here; there are ${PARAMETERS.join(', ')}.`)
    if (given.has(name)) throw badParameter(name, `${name} must be given at most once.`)
    given.set(name, value)
  }
  const limit = Number(given.get('limit') ?? LIMIT.usual)
  if (!NUMBER.test(given.get('limit') ?? '1') || limit < LIMIT.least || limit > LIMIT.most) {
    throw badParameter('limit', `limit must be a whole number from ${LIMIT.least} to ${LIMIT.most}.`)
  }
  const after = given.get('after') ?? '0'
  if (!NUMBER.test(after)) throw badParameter('after', 'after must be a sequence: a whole number from 0.')
  const wait = given.get('wait')
  const waitMs = wait === undefined ? 0 : parseDuration(wait)
  if (waitMs === null || waitMs > WAIT_MS_MAX) {
    throw badParameter('wait', `wait must be a duration such as 30s, and at most ${WAIT_MS_MAX / 1000}s.`)
  }
  return { after: Number(after), limit, waitMs }
}

/** What a reader that comes back has seen last; it knows better than the address it was first given. */
function lastEventId(ctx: Context): number | null {
  const [value, ...more] = headerValues(ctx.req, 'last-event-id')
  if (value === undefined || value === '') return null
  if (!NUMBER.test(value) || more.length > 0)
    throw badParameter('Last-Event-ID', 'Last-Event-ID must be one sequence: a whole number from 0.')
  return Number(value)
}

function badParameter(parameter: string, message: string): AppError {
  return new AppError('bad_request', message, { facts: { parameter } })
}
