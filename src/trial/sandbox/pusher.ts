import { Agent as HttpAgent, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import type { Faults } from './options.ts'
import { drawFor, randomFor, shuffled } from './parcel-plan.ts'
import { type PushEvent, signatureOf } from './world.ts'

export interface PushAttempt {
  readonly url: string
  /** The status of the receiver's answer. Null: no answer came, and `error` says why. */
  readonly status: number | null
  readonly error: string | null
}

/**
 * An event, and what became of its push. `silenced` (during a silence) and `lost`: the push is never sent. `waiting`: it will be sent. `sent`:
 * every receiver has accepted it, or the sandbox has given it up.
 */
export interface PushRecord {
  readonly sequence: number
  readonly trackingNumber: string
  readonly body: string
  readonly fate: 'silenced' | 'lost' | 'waiting' | 'sent'
  /** How often the push is sent: 2 for a duplicate, 0 if it is never sent. */
  readonly copies: number
  /** Whether a later event of the same parcel was sent before this event. */
  readonly reordered: boolean
  readonly attempts: readonly PushAttempt[]
}

export interface PusherOptions {
  readonly urls: () => readonly string[]
  readonly sharedKey: string
  readonly seed: number
  /** How often a push without a 2xx answer is tried again. */
  readonly retries: number
  readonly retryDelayMs: number
  readonly timeoutMs: number
  readonly faults: () => Faults
}

export type Pusher = ReturnType<typeof createPusher>

const lanesPerUrl = 8
const windowMsMax = 250

type Growing = { -readonly [Key in keyof PushRecord]: PushRecord[Key] }

interface Copy {
  readonly record: Growing
  readonly first: boolean
}

function isAccepted(status: number | null): boolean {
  return status !== null && status >= 200 && status < 300
}

function recordOf(event: PushEvent, sequence: number, silent: boolean, faults: Faults, seed: number): Growing {
  const isDrawn = (fault: string, fraction: number): boolean => drawFor(seed, fault, event.scanId) < fraction
  const base = { sequence, trackingNumber: event.trackingNumber, body: event.body, reordered: false, attempts: [] }
  if (silent) return { ...base, fate: 'silenced', copies: 0 }
  if (isDrawn('loss', faults.loss)) return { ...base, fate: 'lost', copies: 0 }
  const copies = isDrawn('duplicate', faults.duplicates) ? 2 : 1
  return { ...base, fate: 'waiting', copies }
}

/**
 * Creates a pusher. Events are first collected, and may be shuffled. Then each event is delayed. Then it joins a queue, the same queue for all
 * events of a parcel. So a receiver gets the pushes of a parcel one at a time, in the order in which they joined the queue.
 */
export function createPusher(options: PusherOptions) {
  const { urls, seed, faults } = options
  const records: Growing[] = []
  const lanes = new Map<string, Promise<void>>()
  const newestOut = new Map<string, number>()
  const copiesOut = new Map<PushRecord, number>()
  const random = randomFor(seed, 'reorder')
  const poster = createPoster(options.timeoutMs)
  const delays = createDelays()
  let windowTimer: NodeJS.Timeout | undefined
  let held: readonly Copy[] = []
  let waiting = 0
  const stopping = new AbortController()
  let wakeSettled: readonly (() => void)[] = []

  const finishCopy = ({ record }: Copy): void => {
    copiesOut.set(record, (copiesOut.get(record) ?? 0) + 1)
    if (copiesOut.get(record) === record.copies) record.fate = 'sent'
    waiting -= 1
    if (waiting > 0) return
    for (const wake of wakeSettled) wake()
    wakeSettled = []
  }

  const enqueue = (copy: Copy): void => {
    const { record, first } = copy
    const newest = newestOut.get(record.trackingNumber) ?? 0
    if (first && newest > record.sequence) record.reordered = true
    newestOut.set(record.trackingNumber, Math.max(newest, record.sequence))
    const lane = Math.floor(drawFor(seed, 'lane', record.trackingNumber) * lanesPerUrl)
    const sends = urls().map((url) => {
      const key = `${lane} ${url}`
      const sent = (lanes.get(key) ?? Promise.resolve()).then(() => deliver(record, url, { ...options, poster, stopping: stopping.signal }))
      lanes.set(key, sent)
      return sent
    })
    void Promise.all(sends).then(() => finishCopy(copy))
  }

  const release = (): void => {
    clearTimeout(windowTimer)
    windowTimer = undefined
    const { reorder, delayMs } = faults()
    const leaving = reorder >= 2 ? shuffled(random, held) : held
    held = []
    for (const copy of leaving) {
      if (delayMs === 0) enqueue(copy)
      else delays.after(delayMs, () => enqueue(copy))
    }
  }

  return {
    publish: (event: PushEvent) => {
      const now = faults()
      const record = recordOf(event, records.length + 1, now.silence || urls().length === 0, now, seed)
      records.push(record)
      waiting += record.copies
      held = [...held, ...Array.from({ length: record.copies }, (_, nth) => ({ record, first: nth === 0 }))]
      if (held.length >= now.reorder) release()
      // Too few events may come for a shuffle, so a timer releases them.
      else windowTimer ??= setTimeout(release, windowMsMax)
    },
    /** Posts a body once to every receiver, signed with this key. Adds nothing to `records`, because the body is not an event of a parcel. */
    post: (body: string, sharedKey: string): Promise<readonly PushAttempt[]> =>
      Promise.all(urls().map(async (url) => ({ url, ...(await poster.post(url, body, headersOf(body, sharedKey))) }))),
    /** Sends the events that are still being collected for a shuffle. Resolves when no push is waiting. */
    settle: async () => {
      release()
      if (waiting > 0) await new Promise<void>((resolve) => (wakeSettled = [...wakeSettled, resolve]))
    },
    records: (): readonly PushRecord[] => records.map((record) => ({ ...record })),
    stop: async () => {
      stopping.abort()
      clearTimeout(windowTimer)
      delays.stop()
      poster.stop()
      await Promise.all(lanes.values())
      for (const wake of wakeSettled) wake()
    },
  }
}

interface DeliverOptions extends Pick<PusherOptions, 'sharedKey' | 'retries' | 'retryDelayMs'> {
  readonly poster: ReturnType<typeof createPoster>
  readonly stopping: AbortSignal
}

async function deliver(
  record: Growing,
  url: string,
  { sharedKey, retries, retryDelayMs, poster, stopping }: DeliverOptions,
): Promise<void> {
  const headers = headersOf(record.body, sharedKey)
  for (let tries = 0; tries <= retries && !stopping.aborted; tries += 1) {
    if (tries > 0) await delay(retryDelayMs, undefined, { signal: stopping }).catch(() => undefined)
    const result = await poster.post(url, record.body, headers)
    record.attempts = [...record.attempts, { url, ...result }]
    if (isAccepted(result.status)) return
  }
}

function headersOf(body: string, sharedKey: string): Readonly<Record<string, string>> {
  return { 'Content-Type': 'application/json', 'x-service-hmac-sha256': signatureOf(body, sharedKey) }
}

function createDelays() {
  const timers = new Set<NodeJS.Timeout>()
  return {
    after(delayMs: number, run: () => void): void {
      const timer = setTimeout(() => {
        timers.delete(timer)
        run()
      }, delayMs)
      timers.add(timer)
    },
    stop(): void {
      for (const timer of timers) clearTimeout(timer)
    },
  }
}

type PostResult = { readonly status: number; readonly error: null } | { readonly status: null; readonly error: string }

interface Poster {
  /** Never throws and never follows a redirect. */
  post(url: string, body: string, headers: Readonly<Record<string, string>>): Promise<PostResult>
  /** Aborts running requests and closes every connection. */
  stop(): void
}

function createPoster(timeoutMs: number): Poster {
  const agents = { http: new HttpAgent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true }) }
  const stopping = new AbortController()

  const post: Poster['post'] = (url, body, headers) =>
    new Promise((resolve) => {
      const fail = (error: Error): void => resolve({ status: null, error: 'code' in error ? String(error.code) : error.name })
      const bytes = Buffer.from(body, 'utf8')
      const options = {
        method: 'POST',
        headers: { ...headers, 'Content-Length': bytes.length },
        signal: AbortSignal.any([stopping.signal, AbortSignal.timeout(timeoutMs)]),
      }
      const request = url.startsWith('https:')
        ? httpsRequest(url, { ...options, agent: agents.https })
        : httpRequest(url, { ...options, agent: agents.http })
      request.on('error', fail)
      request.on('response', (response) => {
        response.on('error', fail)
        response.on('end', () => resolve({ status: response.statusCode ?? 0, error: null }))
        response.resume()
      })
      request.end(bytes)
    })

  return {
    post,
    stop: () => {
      stopping.abort()
      agents.http.destroy()
      agents.https.destroy()
    },
  }
}
