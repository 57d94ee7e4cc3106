import type { ServerResponse } from 'node:http'
import type { LiveLook, Shown } from '../../../flow/admin/overview/live-look.ts'
import type { Log } from '../../../flow/ports.ts'

export interface LiveStreamsPorts {
  readonly look: LiveLook
  /** Repeats work until stopped, each time `everyMs` after the last run has ended. */
  readonly repeat: (work: () => Promise<void>, everyMs: number) => { readonly stop: () => void }
  /** Whether the relay is stopping. */
  readonly isOver: () => boolean
  readonly log: Log
}

/** An open page. */
export interface LivePage {
  readonly shown: Shown
  /** Whether the person who has opened it may still see it. Called several times a second. */
  readonly isAllowed: () => boolean
}

/** Tells open pages, over server-sent events, that their data has changed. */
export interface LiveStreams {
  /** False: the maximum of streams is open. */
  hasRoom(): boolean
  /** Streams until the reader leaves the page or may not see it any more, or the relay stops. */
  stream(res: ServerResponse, page: LivePage): Promise<void>
}

interface Stream extends LivePage {
  readonly res: ServerResponse
  /** A digest of what the page showed at the last look; null: there was no look yet. */
  stamp: string | null
  /** How many beats have passed since something was written. */
  quiet: number
}

/** These streams do not count among the feed's followers. */
const STREAMS_MAX = 100
/** A stream ends within a second after it should. */
const BEAT_MS = 250
/** Looks are two seconds apart, so that no page is loaded more often. */
const BEATS_PER_LOOK = 8
/** A comment every 15 s keeps the connection open. */
const BEATS_QUIET_MAX = 60

const HEADERS = {
  'Content-Type': 'text/event-stream',
  // No proxy may cache, compress or buffer the stream.
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
  'X-Content-Type-Options': 'nosniff',
}

/** Creates the streams of open pages. One look serves all of them. While no page is open, no look is made. */
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

  /** One look at a time, because each compares with the one before. */
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
      // Each page shows the time of its data. When the store can be read again, the next look tells the pages what has changed.
      log.debug({ err }, 'open pages could not be kept up to date')
    }
  }

  function write(stream: Stream, text: string): void {
    stream.quiet = 0
    // A reader that does not take a line in 15 s is gone.
    if (stream.res.writableNeedDrain) stream.res.destroy()
    else stream.res.write(text)
  }

  return {
    hasRoom: () => streams.size < STREAMS_MAX,
    async stream(res, page) {
      // If the reader left while we looked up the session, no close event follows, and the stream would count forever.
      if (res.closed) return
      const stream: Stream = { ...page, res, stamp: null, quiet: 0 }
      const closed = new Promise<void>((resolve) => {
        res.once('close', resolve)
      })
      streams.add(stream)
      beating ??= repeat(beat, BEAT_MS)
      // Look before answering, so that no change after the answer is missed.
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
