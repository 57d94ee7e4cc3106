import type { Context } from 'koa'
import { z } from 'zod'
import { AppError } from '../../domain/errors.ts'
import type { FeedPage, FollowFeed } from '../../flow/delivery/feed-tail.ts'
import type { Log } from '../../flow/ports.ts'
import { type AnswerOf, identifier, named, numberedId, wholeNumber } from '../server/answer-schemas.ts'
import { type Authorize, type HoldAccess, leavingOf } from '../server/authorize.ts'
import { count, durationMs, query, whole } from '../server/query.ts'
import { headerValues } from '../server/request-headers.ts'
import { apiRoute } from '../server/route.ts'
import { createFollowerSlots, streamEvents } from './event-stream.ts'

const members = () => z.record(z.string(), z.unknown()).describe('Members that the carrier sent and the relay does not know.')

const feedParcel = named('FeedParcel', () =>
  z.strictObject({
    id: numberedId().describe("The relay's own id of the parcel, the same until a `join` replaces it."),
    identifiers: z.array(identifier()),
    trackingIds: z.array(z.string()),
    distributionType: z.string(),
    extra: members(),
    history: z.array(wholeNumber()).describe('The whole history by entry id, newest first.'),
  }),
)

const feedEntry = named('FeedEntry', () =>
  z.strictObject({
    id: wholeNumber(),
    status: z.string(),
    detailedStatus: z.string(),
    eventTimestamp: z.string(),
    location: z.string(),
    displayToConsumer: z.boolean(),
    texts: z
      .record(z.string(), z.strictObject({ consumer: z.string().nullable().optional(), detailed: z.string().nullable().optional() }))
      .describe('By language. A missing member was never reported.'),
    extra: members(),
  }),
)

const eventMembers = () => ({
  sequence: z.int().min(1),
  parcel: feedParcel(),
  entry: feedEntry().nullable().describe('Null: the event is about the parcel as a whole.'),
})

/** An event of the feed, by its kind. */
const feedEventSchema = named('FeedEvent', () =>
  z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.enum(['entry', 'update', 'split']), ...eventMembers() }),
    z.strictObject({
      kind: z.literal('united'),
      ...eventMembers(),
      united: z.array(wholeNumber()).optional().describe('The ids that are now part of `entry`.'),
    }),
    z.strictObject({
      kind: z.literal('retired').describe('The parcel was past `retention.history` and is gone. No other parcel gets its id.'),
      sequence: z.int().min(1),
      parcel: z.strictObject({ id: numberedId() }),
    }),
    z.strictObject({
      kind: z.literal('erased').describe('The parcel was erased, with its events. No other parcel gets its id.'),
      sequence: z.int().min(1),
      parcel: z.strictObject({ id: numberedId() }),
    }),
    z.strictObject({
      kind: z.literal('join'),
      ...eventMembers(),
      joined: z.strictObject({ id: numberedId(), identifiers: z.array(identifier()) }).describe('The parcel that is now part of this one.'),
      entries: z.array(feedEntry()).describe('All entries of the parcel, newest first.'),
    }),
  ]),
)

/** The limit of `wait` is shorter than the time after which the server closes inactive connections. */
const QUERY = query({
  after: count.default(0).describe('The sequence after which to begin.'),
  limit: whole(1, 500).default(100),
  wait: durationMs(50).default(0).describe('How long to wait for events, such as 30s.'),
})
const PAGE_CHARS_MAX = 512 * 1024
/** Each slow reader of a stream may keep one page in memory. */
const STREAM_PAGE = { limit: 500, charsMax: 64 * 1024, inStep: true }
const STREAM = { heartbeatMs: 15_000, slowMs: 15_000 }
const NUMBER = /^\d{1,15}$/

export interface EventsRoutePorts {
  readonly followFeed: FollowFeed
  /** `limits.feedFollowers`: how many streams and waiting requests there may be at once. */
  readonly feedFollowersMax: number
  readonly authorize: Authorize
  readonly holdAccess: HoldAccess
  readonly log: Log
}

const pageSchema = () =>
  z.strictObject({
    events: z.array(feedEventSchema()),
    next: wholeNumber().describe('The `after` of the next page.'),
  })

export type FeedAnswer = AnswerOf<typeof pageSchema>

export const EVENTS_ROUTES = [
  apiRoute({
    method: 'get',
    path: '/relay/events',
    summary: 'Read the feed of all changes',
    description:
      'Every change of every parcel, in the order in which the relay recorded it: a page, a long poll (`wait`), or with `Accept: text/event-stream` a stream. A reader ignores kinds that it does not know.',
    scope: 'status',
    params: {},
    query: QUERY,
    body: null,
    answers: () => ({
      200: {
        description: 'The events after `after`',
        content: {
          'application/json': pageSchema(),
          'text/event-stream': z.string().describe('`id` is the sequence, `data` the event as JSON; comments keep the connection open.'),
        },
      },
    }),
    problems: ['feed_gone', 'feed_rewound', 'overloaded'],
    example: { path: {}, query: 'after=0&limit=10' },
    answer: createFeedReader,
  }),
]

function createFeedReader({ followFeed, feedFollowersMax, authorize, holdAccess, log }: EventsRoutePorts) {
  const slots = createFollowerSlots(feedFollowersMax)

  /** Runs `work` while the app holds a follower's slot. `left` is aborted when the client disconnects, or loses the slot or its access. */
  async function following(ctx: Context, app: string, work: (left: AbortSignal) => Promise<void>): Promise<void> {
    const slot = slots.take(app)
    const leaving = leavingOf(ctx.res)
    const leave = () => leaving.abort()
    slot.revoked.addEventListener('abort', leave)
    let release = () => {}
    try {
      release = await holdAccess(ctx, 'status', leave)
      await work(leaving.signal)
    } finally {
      release()
      slot.release()
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
    // Koa must not answer, because the stream has written the answer itself.
    ctx.respond = false
  }

  return async (
    ctx: Context,
    {
      app: { username },
      query: { after, limit, wait },
    }: { readonly app: { readonly username: string }; readonly query: z.output<typeof QUERY> },
  ): Promise<void> => {
    if (ctx.method === 'GET' && ctx.accepts('application/json', 'text/event-stream') === 'text/event-stream') {
      const from = lastEventId(ctx) ?? after
      await following(ctx, username, (left) => stream(ctx, from, left))
      return
    }
    const answer = async (left: AbortSignal) => {
      const page = await followFeed.follow({ after, limit, charsMax: PAGE_CHARS_MAX, inStep: false, left })(wait)
      // The app may have lost its access while the request waited.
      if (left.aborted) await authorize(ctx, 'status')
      presentPage(ctx, page)
    }
    // A plain page needs no follower's slot.
    if (wait === 0) await answer(new AbortController().signal)
    else await following(ctx, username, answer)
  }
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

/** Returns the last sequence that a reconnecting reader has received. It overrides `after`, which the reader's URL still contains. */
function lastEventId(ctx: Context): number | null {
  const [value, ...more] = headerValues(ctx.req, 'last-event-id')
  if (value === undefined || value === '') return null
  if (!NUMBER.test(value) || more.length > 0)
    throw new AppError('bad_request', 'Last-Event-ID must be one sequence, a whole number of at least 0.')
  return Number(value)
}
