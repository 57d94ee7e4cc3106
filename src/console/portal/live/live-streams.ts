import type { ServerResponse } from 'node:http'
import type Router from '@koa/router'
import type { Context } from 'koa'
import { conditionOf } from '../../../core/domain/delivery/endpoint-state.ts'
import { isObject, member, readJson } from '../../../core/domain/json-body.ts'
import { carrierStanding } from '../../../core/domain/polling/carrier-answer.ts'
import type { Log } from '../../../core/flow/ports.ts'
import type { Reads, Relay } from '../../../core/flow/relay-part.ts'
import { EVENT_STREAM_HEADERS } from '../../../core/http/delivery/events.routes.ts'
import { proveConnection } from '../../../core/http/server/connection-slots.ts'
import type { Overview } from '../../overview/overview.ts'
import { type Glance, problemsOf, pushStanding } from '../../problems/verdict.ts'
import type { Person, Sessions } from '../session.ts'

/** Which part of an open page is kept up to date. `other`: only the problems in the side bar, which every page shows. */
type Shown =
  | { readonly kind: 'overview' | 'jobs' | 'other' }
  | { readonly kind: 'endpoint'; readonly id: string }
  | { readonly kind: 'parcel'; readonly identifier: string }

export interface LiveLookPorts extends Pick<Relay, 'clock'>, Reads<'readFeed' | 'listJobs'> {
  readonly overview: Pick<Overview, 'glance'>
  /** Reads the newest events of the feed. */
  readonly tail: { read(request: typeof PAGE & { readonly after: number }): Promise<TailPage> }
}

interface TailPage {
  readonly events: readonly { readonly json: string }[]
  readonly next: number
  readonly ended: boolean
}

interface LiveLook {
  /**
   * Returns a text for each page. A text changes whenever its page would show something else. The texts are made from the store, so changes
   * by other replicas change them too. Throws if the store cannot be read.
   */
  stamps(shown: readonly Shown[]): Promise<readonly string[]>
}

/** One look reads at most this many pages of the feed. If there are more, all shown parcels count as changed. */
const PAGES_MAX = 20
const PAGE = { limit: 500, charsMax: 256 * 1024, inStep: true }
/** A look reads only this many of the newest jobs. The running jobs are among them. */
const JOBS_MAX = 20
/** Times such as `lastPushAtMs` change all the time. They are rounded to this, so a page may show them some seconds late. */
const COARSE_MS = 30_000

/** Each look makes a few small reads, however many pages are open. */
export function createLiveLook({ overview, tail, reads, clock }: LiveLookPorts): LiveLook {
  /** The sequence up to which the feed was read; null: no page shows a parcel. */
  let readTo: number | null = null
  /** How often each shown parcel has changed since it was first shown. */
  const changes = new Map<string, number>()

  async function countChanges(identifiers: ReadonlySet<string>): Promise<void> {
    for (const identifier of changes.keys()) if (!identifiers.has(identifier)) changes.delete(identifier)
    for (const identifier of identifiers) if (!changes.has(identifier)) changes.set(identifier, 0)
    if (identifiers.size === 0) {
      readTo = null
      return
    }
    const changed = readTo === null ? new Set<string>() : await changedSince(readTo)
    if (readTo === null || changed === null) readTo = await endOfFeed()
    for (const identifier of identifiers)
      if (changed === null || changed.has(identifier)) changes.set(identifier, (changes.get(identifier) ?? 0) + 1)
  }

  /** Returns the identifiers in the events after a sequence; null: there are too many events for one look. */
  async function changedSince(sequence: number): Promise<ReadonlySet<string> | null> {
    const named = new Set<string>()
    let after = sequence
    for (let page = 0; page < PAGES_MAX; page++) {
      const { events, next, ended } = await tail.read({ ...PAGE, after })
      for (const { json } of events) for (const identifier of identifiersIn(json)) named.add(identifier)
      after = next
      if (!ended) continue
      readTo = after
      return named
    }
    return null
  }

  async function endOfFeed(): Promise<number> {
    return (await reads.readFeed({ after: Number.MAX_SAFE_INTEGER, limit: 1 })).last
  }

  return {
    async stamps(shown) {
      const glance = await overview.glance()
      await countChanges(new Set(shown.flatMap((one) => (one.kind === 'parcel' ? [one.identifier] : []))))
      const general = generalStamp(glance)
      const jobs = shown.some(({ kind }) => kind === 'jobs') ? await jobsStamp() : ''
      return shown.map((one) => `${general} ${one.kind === 'jobs' ? jobs : ownStamp(one, glance)}`)
    },
  }

  async function jobsStamp(): Promise<string> {
    const jobs = await reads.listJobs({ before: null, limit: JOBS_MAX })
    return JSON.stringify(jobs.map(({ jobId, state, done }) => [jobId, state, done]))
  }

  function ownStamp(shown: Shown, { pushes, refused, endpoints }: Glance): string {
    if (shown.kind === 'overview') {
      const causes = refused.map(({ cause }) => cause)
      return JSON.stringify([coarse(pushes.lastPushAtMs), pushes.missedSincePush, causes, coarse(clock.now())])
    }
    if (shown.kind === 'parcel') return String(changes.get(shown.identifier) ?? 0)
    if (shown.kind !== 'endpoint') return ''
    const state = endpoints.find(({ endpoint }) => endpoint.id === shown.id)
    if (state === undefined) return 'removed'
    const { keys, health, ...rest } = state
    return JSON.stringify([rest, { ...health, lastSuccessAtMs: coarse(health.lastSuccessAtMs) }, keys?.next?.fromMs, keys?.currentSinceMs])
  }
}

function coarse(atMs: number | null): number | null {
  return atMs === null ? null : Math.floor(atMs / COARSE_MS)
}

function generalStamp(glance: Glance): string {
  const { counts, carrier, pushes, endpoints } = glance
  const problems = problemsOf(glance).map((problem) => [problem.kind, 'state' in problem ? problem.state.endpoint.id : null])
  return JSON.stringify([
    problems,
    counts.quarantined,
    [carrierStanding(carrier).kind, pushes.health, pushStanding(pushes)],
    endpoints.map((state) => [state.endpoint.id, state.endpoint.name, conditionOf(state)]),
  ])
}

function identifiersIn(json: string): readonly string[] {
  const reading = readJson(Buffer.from(json))
  const event = reading.ok ? reading.value : null
  return ['parcel', 'joined'].flatMap((name) => {
    const part = isObject(event) ? member(event, name) : null
    const identifiers = isObject(part) ? member(part, 'identifiers') : null
    return Array.isArray(identifiers) ? identifiers.filter((one) => typeof one === 'string') : []
  })
}

export interface LiveStreamsPorts {
  readonly look: LiveLook
  /** Repeats `work` until stopped. It waits `everyMs` between the end of one run and the start of the next. */
  readonly repeat: (work: () => Promise<void>, everyMs: number) => { readonly stop: () => void }
  /** Whether the relay is stopping. */
  readonly isOver: () => boolean
  readonly log: Log
}

export interface LivePage {
  readonly shown: Shown
  /** Whoever opened it, as the name of the app or person, and their session. Each of the two has a limit. */
  readonly reader: readonly [name: string, session: string]
  /** Whether the person at the browser may still see the page. Called several times a second. */
  readonly isAllowed: () => boolean
}

/** Tells open pages, over server-sent events, that their data has changed. */
export type LiveStreams = ReturnType<typeof createLiveStreams>

interface Stream extends LivePage {
  readonly res: ServerResponse
  /** A digest of the page's data at the last look. Null: there was no look yet. */
  stamp: string | null
  /** The number of beats, of `BEAT_MS` each, since something was last written. */
  quiet: number
}

/** The most streams at the same time. Streams of the feed, which apps read, have another limit. */
const STREAMS_MAX = 100
/** The most streams of one name, so that no app takes all places, and of one session: some browsers have many tabs open. */
const READER_MAX = [50, 20] as const
/** How often the relay checks each stream, so that the stream ends soon after the person has lost access or the relay stops. */
const BEAT_MS = 250
/** The streams look at the data every two seconds, so a page in the browser reloads its data at most that often. */
const BEATS_PER_LOOK = 8
/** After this many beats (15 s) without a line, a comment is sent, so that no proxy closes the connection. */
const BEATS_QUIET_MAX = 60

const HEADERS = new Map(Object.entries({ ...EVENT_STREAM_HEADERS, 'X-Content-Type-Options': 'nosniff' }))

/** Creates the streams of open pages. One look at the data serves all streams. While no page is open, there are no looks. */
export function createLiveStreams({ look, repeat, isOver, log }: LiveStreamsPorts) {
  const streams = new Set<Stream>()
  let beating: { readonly stop: () => void } | null = null
  let beats = 0
  let looking = Promise.resolve()

  async function beat(): Promise<void> {
    for (const stream of streams) keepOrEnd(stream)
    beats += 1
    if (streams.size > 0 && beats % BEATS_PER_LOOK === 0) await lookForAll()
  }

  function keepOrEnd(stream: Stream): void {
    if (isOver() || !stream.isAllowed()) stream.res.end()
    else if (stream.quiet >= BEATS_QUIET_MAX) write(stream, ':\n\n')
    else stream.quiet += 1
  }

  /** Waits until the previous look has ended, then looks. Each look compares the data with the previous look. */
  function lookForAll(): Promise<void> {
    looking = looking.then(lookOnce)
    return looking
  }

  async function lookOnce(): Promise<void> {
    const looked = [...streams]
    try {
      const stamps = await look.stamps(looked.map(({ shown }) => shown))
      for (const [at, stream] of looked.entries()) {
        const stamp = stamps[at] ?? null
        if (stream.stamp !== null && stream.stamp !== stamp) write(stream, 'event: changed\ndata:\n\n')
        stream.stamp = stamp
      }
    } catch (err) {
      // A debug line is enough: each page shows the time of its data, and the next look that succeeds reports every change.
      log.debug({ err }, 'open pages could not be kept up to date')
    }
  }

  function write(stream: Stream, text: string): void {
    stream.quiet = 0
    // The buffer is full of short lines that the browser has not read, so the browser is gone.
    if (stream.res.writableNeedDrain) stream.res.destroy()
    else if (!stream.res.writableEnded) stream.res.write(text)
  }

  return {
    /** Whether one more stream may be opened by this reader. */
    hasRoom: (reader: LivePage['reader']) =>
      streams.size < STREAMS_MAX &&
      READER_MAX.every((most, at) => [...streams].filter((stream) => stream.reader[at] === reader[at]).length < most),
    /** Writes to `res` until the person leaves the page or may no longer see it, or the relay stops. */
    async stream(res: ServerResponse, page: LivePage) {
      // If the browser left while the session was looked up, no close event follows, so the stream would never be deleted.
      if (res.closed) return
      const stream: Stream = { ...page, res, stamp: null, quiet: 0 }
      const closed = new Promise<void>((resolve) => {
        res.once('close', resolve)
      })
      // A look or a beat for all may write to this stream, or end it, before its own look has ended.
      res.statusCode = 200
      res.setHeaders(HEADERS)
      streams.add(stream)
      beating ??= repeat(beat, BEAT_MS)
      // Look before the answer begins, so that the next look detects every change since then.
      await lookForAll()
      if (!res.writableEnded && !res.destroyed) res.write('retry: 2000\n\n')
      await closed
      streams.delete(stream)
      if (streams.size > 0) return
      beating?.stop()
      beating = null
    },
  }
}

interface LiveOptions {
  readonly live: LiveStreams
  readonly sessions: Pick<Sessions, 'personOf' | 'hold'>
  readonly settings: () => { readonly enabled: boolean }
}

/** Adds the route of the stream that tells a page in a browser when its data has changed. */
export function addLive(router: Router, { live, sessions, settings }: LiveOptions): void {
  router.get('/live', async (ctx: Context) => {
    const person = await sessions.personOf(ctx, false)
    const held = person === null ? null : await sessions.hold(ctx, person)
    ctx.set('Cache-Control', 'no-store')
    const reader = [person?.name ?? '', held?.session ?? ''] as const
    if (person === null || held === null || !live.hasRoom(reader)) {
      // After an error status the browser does not reconnect.
      ctx.status = person === null ? 401 : 503
      held?.release()
      return
    }
    proveConnection(ctx.req)
    if (ctx.method === 'HEAD') {
      held.release()
      ctx.status = 200
      return
    }
    const page = new URLSearchParams(ctx.querystring).get('page') ?? ''
    await live.stream(ctx.res, { reader, shown: shownOn(page, person), isAllowed: () => settings().enabled && held.isAllowed() })
    held.release()
    // The stream has written the answer itself.
    ctx.respond = false
  })
}

/** Returns which data the page at `path` keeps up to date. `other`: only the side bar. */
function shownOn(path: string, { scope }: Pick<Person, 'scope'>): Shown {
  if (path === '/') return { kind: 'overview' }
  if (path === '/jobs' && scope === 'admin') return { kind: 'jobs' }
  const [, section, id = ''] = /^\/(parcels|webhooks)\/([a-z0-9]{1,40})$/i.exec(path) ?? []
  if (section === 'parcels') return { kind: 'parcel', identifier: id.toUpperCase() }
  if (section === 'webhooks' && scope === 'admin') return { kind: 'endpoint', id }
  return { kind: 'other' }
}
