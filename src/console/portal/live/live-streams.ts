import type { ServerResponse } from 'node:http'
import type Router from '@koa/router'
import type { Context } from 'koa'
import type { Log } from '../../../core/flow/ports.ts'
import { proveConnection } from '../../../core/http/server/connection-slots.ts'
import type { LiveLook, Shown } from '../../overview/live-look.ts'
import type { Person, Sessions } from '../session.ts'

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
export interface LiveStreams {
  /** Whether one more stream may be opened by this reader. */
  hasRoom(reader: LivePage['reader']): boolean
  /** Writes to `res` until the person leaves the page or may no longer see it, or the relay stops. */
  stream(res: ServerResponse, page: LivePage): Promise<void>
}

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

const HEADERS = {
  'Content-Type': 'text/event-stream',
  // No proxy may cache, compress or buffer the stream.
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
  'X-Content-Type-Options': 'nosniff',
}

/** Creates the streams of open pages. One look at the data serves all streams. While no page is open, there are no looks. */
export function createLiveStreams({ look, repeat, isOver, log }: LiveStreamsPorts): LiveStreams {
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
    else stream.res.write(text)
  }

  return {
    hasRoom: (reader) =>
      streams.size < STREAMS_MAX &&
      READER_MAX.every((most, at) => [...streams].filter((stream) => stream.reader[at] === reader[at]).length < most),
    async stream(res, page) {
      // If the browser left while the session was looked up, no close event follows, so the stream would never be deleted.
      if (res.closed) return
      const stream: Stream = { ...page, res, stamp: null, quiet: 0 }
      const closed = new Promise<void>((resolve) => {
        res.once('close', resolve)
      })
      streams.add(stream)
      beating ??= repeat(beat, BEAT_MS)
      // Look before the answer begins, so that the next look detects every change since then.
      await lookForAll()
      if (!res.headersSent && !res.destroyed) {
        res.writeHead(200, HEADERS)
        res.write('retry: 2000\n\n')
      }
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
