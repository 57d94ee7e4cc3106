import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import { z } from 'zod'
import { AppError } from '../../domain/errors.ts'
import type { FeedFollower, FeedPage, FollowFeed } from '../../flow/delivery/feed-tail.ts'
import type { Log } from '../../flow/ports.ts'
import { type AnswerOf, identifier, instant, named, numberedId, wholeNumber } from '../server/answer-schemas.ts'
import { type Authorize, type HoldAccess, leavingOf } from '../server/authorize.ts'
import { EdgeError } from '../server/problems.ts'
import { headerValues } from '../server/request-headers.ts'
import { apiRoute, count, durationMs, query, whole } from '../server/route.ts'

const members = () => z.record(z.string(), z.unknown()).describe('Members that the carrier sent and the relay does not know.')

const feedParcel = named('FeedParcel', () =>
  z.strictObject({
    id: numberedId().describe("The relay's own id of the parcel, the same until a `join` replaces it."),
    identifiers: z.array(identifier()),
    trackingIds: z.array(z.string()),
    distributionType: z.string(),
    reference: z.string().optional().describe('The number of its order; absent: none is known.'),
    labels: z.record(z.string(), z.string()).optional().describe('The labels of its order; absent: it has none.'),
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
      kind: z.enum(['stalled', 'recovered']).describe('A rule of `watchdogs` found the parcel stalled, or that is over.'),
      ...eventMembers(),
      watchdog: z
        .strictObject({ rule: z.string(), since: instant(), checked: z.boolean().describe('Whether the carrier was asked before.') })
        .optional()
        .describe('Absent: it is no longer known.'),
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
  readonly relayId: string
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
    relay: z.string().describe('The id of the relay. Replicas share one.'),
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

function createFeedReader({ followFeed, relayId, feedFollowersMax, authorize, holdAccess, log }: EventsRoutePorts) {
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
      presentPage(ctx, page, relayId)
    }
    // A plain page needs no follower's slot.
    if (wait === 0) await answer(new AbortController().signal)
    else await following(ctx, username, answer)
  }
}

const bodiesMade = new WeakMap<FeedPage, Buffer>()

function presentPage(ctx: Context, page: FeedPage, relayId: string): void {
  const body =
    bodiesMade.get(page) ??
    Buffer.from(`{"events":[${page.events.map(({ json }) => json).join(',')}],"next":${page.next},"relay":"${relayId}"}`)
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

interface EventStreamPorts {
  readonly next: FeedFollower
  isOver(): boolean
  /** Aborted when the reader has left, or may no longer read. */
  readonly left: AbortSignal
}

interface EventStreamOptions {
  /** How often a quiet stream sends a comment. */
  readonly heartbeatMs: number
  /** A reader that takes none of the waiting bytes for this long is disconnected. */
  readonly slowMs: number
}

/** The headers of server-sent events. */
export const EVENT_STREAM_HEADERS = {
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
  res.writeHead(200, EVENT_STREAM_HEADERS)
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
