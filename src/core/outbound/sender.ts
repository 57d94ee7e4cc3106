import { type Dispatcher, errors, Pool, ProxyAgent } from 'undici'
import { ANSWER_KEPT_BYTES, type AttemptOutcome, type AttemptResult } from '../domain/delivery/delivery.ts'
import type { PostRequest, Route } from '../domain/delivery/delivery-request.ts'
import { parseRetryAfter } from '../domain/instant.ts'
import type { Clock, DeliverySender } from '../flow/ports.ts'
import { type StartTimer, startRealTimer } from './deadline.ts'
import type { EgressGuard } from './egress-guard.ts'
import { createGuardedConnector, createTlsContext, type TlsIdentity } from './guarded-connector.ts'
import {
  type ConnectionUser,
  type CreatePool,
  createPoolFactory,
  createReuseCheck,
  failureOf,
  proxiedFailureOf,
  type SendFailure,
} from './send-failure.ts'

export interface SenderOptions {
  readonly guard: EgressGuard
  /** The time limit for a whole post: resolving, connecting, sending, the answer and its body. */
  readonly timeoutMs: number
  readonly clock: Clock
  /** See `PoolPorts`. */
  readonly random?: () => number
  readonly startTimer?: StartTimer
  /** Whether posts may be sent now. If they may not, they end as `interrupted`. Default: always true. */
  readonly mayPost?: () => boolean
}

/**
 * Posts to endpoints. `close` ends the running posts; later posts fail as `interrupted`. `retire` waits for the running posts, then closes. A
 * post that has no connection yet when `retire` is called ends as `withdrawn`.
 */
export interface Sender extends DeliverySender {
  close(): Promise<void>
  retire(): Promise<void>
}

const INTERRUPTED: SendFailure = { reason: 'interrupted', detail: 'CLOSED' }
const LAPSED: SendFailure = { reason: 'interrupted', detail: 'LAPSED' }
const WITHDRAWN: SendFailure = { reason: 'withdrawn', detail: 'CHANGED' }
const TIMED_OUT: SendFailure = { reason: 'timeout', detail: 'DEADLINE' }

export function createSender({ guard, timeoutMs, clock, random, startTimer = startRealTimer, mayPost = always }: SenderOptions): Sender {
  const pools = createPools(guard, timeoutMs, createPoolFactory({ monotonic: clock.monotonic, random }))
  const running = createDeadlineList(timeoutMs, startTimer)
  let isClosed = false
  let isRetired = false

  function post({ url, headers, body, route = DIRECT, mayLeave = always }: PostRequest, onEnd: (result: AttemptResult) => void): void {
    const startedMs = clock.monotonic()
    const refused = (failure: SendFailure) =>
      onEnd({ ...failedOutcome(failure), answerStart: EMPTY_BODY, durationMs: clock.monotonic() - startedMs })
    if (isClosed) {
      refused(INTERRUPTED)
      return
    }
    const isProxied = route.proxy !== undefined
    const verdict = isProxied ? guard.checkProxiedUrl(url) : guard.checkUrl(url)
    if (!verdict.ok) {
      refused({ reason: 'forbidden', detail: verdict.reason })
      return
    }

    let endPost: EndPost | null = null
    const lasting = running.add(() => endPost?.(isClosed ? INTERRUPTED : TIMED_OUT), startedMs)
    endPost = startPost(
      pools.of(route, verdict.origin),
      { origin: verdict.origin, path: verdict.path, headers, body },
      {
        now: clock.now,
        // Ask again when the post has a connection: by now another replica may have taken over, or the endpoint or the config may have changed.
        refusal: () => (mayPost() ? (isRetired || !mayLeave() ? WITHDRAWN : null) : LAPSED),
        openFresh: () => pools.openFresh(route, verdict.origin),
        failureOf: isProxied ? proxiedFailureOf : failureOf,
        onEnd(outcome, answerStart, address) {
          running.remove(lasting)
          const attempt = { answerStart, durationMs: clock.monotonic() - startedMs, ...(address === undefined ? {} : { address }) }
          onEnd(outcome.kind === 'accepted' ? { kind: 'accepted', status: outcome.status, ...attempt } : { ...outcome, ...attempt })
        },
      },
    )
  }

  async function close(): Promise<void> {
    isClosed = true
    for (const { end } of running.all()) end()
    await pools.destroy()
  }

  return {
    post,
    send: (request) => new Promise((resolve) => post(request, resolve)),
    async retire() {
      isRetired = true
      await new Promise<void>((resolve) => running.onEmpty(resolve))
      await close()
    },
    close,
  }
}

const DIRECT: Route = {}
const always = () => true

/**
 * Keeps one pool of connections for each route and origin until the pool is unused. The caller limits the concurrency. Undici's `Agent` does
 * the same but costs more: it builds a key for each request, and forwards every event of its pools.
 */
function createPools(guard: EgressGuard, timeoutMs: number, createPool: CreatePool) {
  const pools = new Map<string, Dispatcher>()

  function open(origin: string, { proxy, ...identity }: Route): Dispatcher {
    if (proxy !== undefined) return createProxiedAgent({ proxy, ...identity, timeoutMs, createPool })
    const connect = createGuardedConnector(guard, { timeoutMs, ...identity })
    // The timeouts of the headers and the body are off, because the deadline limits the whole post.
    return createPool(origin, { connect, allowH2: false, headersTimeout: 0, bodyTimeout: 0 })
  }

  function closeUnused(name: string, pool: Dispatcher): void {
    if (!(pool instanceof Pool)) return
    const close = () => {
      const { connected, size } = pool.stats
      if (connected > 0 || size > 0 || pools.get(name) !== pool) return
      pools.delete(name)
      void pool.close()
    }
    pool.on('disconnect', close).on('connectionError', close)
  }

  return {
    of(route: Route, origin: string): Dispatcher {
      const { proxy, ca, client } = route
      const target = proxy === undefined ? origin : `by ${proxy}`
      const name = ca === undefined && client === undefined ? target : `${target} ${ca} ${client?.cert}`
      const known = pools.get(name)
      if (known !== undefined) return known
      const made = open(origin, route)
      pools.set(name, made)
      closeUnused(name, made)
      return made
    },
    /** Opens a pool for one post, which destroys the pool when it ends. */
    openFresh: (route: Route, origin: string) => open(origin, route),
    async destroy(): Promise<void> {
      const all = [...pools.values()]
      pools.clear()
      await Promise.all(all.map((pool) => pool.destroy()))
    },
  }
}

export interface DeadlineEntry {
  /** Called when the entry's time is over, or when the owner ends all entries. */
  readonly end: () => void
  readonly untilMs: number
  previous: DeadlineEntry | null
  next: DeadlineEntry | null
}

/**
 * Ends posts that take too long. All posts have the same time limit, so the oldest post is due first, and one timer is enough.
 *
 * The entries are a linked list. Thousands of posts may begin per second, and at this rate a set or a map keeps many removed entries in memory.
 */
export function createDeadlineList(timeoutMs: number, startTimer: StartTimer) {
  let first: DeadlineEntry | null = null
  let last: DeadlineEntry | null = null
  let cancelTimer: (() => void) | null = null
  let whenEmpty = (): void => {}

  function setTimer(dueMs: number, nowMs: number): void {
    cancelTimer = startTimer(Math.max(0, dueMs - nowMs), () => {
      cancelTimer = null
      for (let one = first, next: DeadlineEntry | null; one !== null && one.untilMs <= dueMs; one = next) {
        next = one.next
        one.end()
      }
      if (first !== null && cancelTimer === null) setTimer(first.untilMs, dueMs)
    })
  }

  return {
    add(end: () => void, nowMs: number): DeadlineEntry {
      const one: DeadlineEntry = { end, untilMs: nowMs + timeoutMs, previous: last, next: null }
      if (last === null) first = one
      else last.next = one
      last = one
      if (cancelTimer === null) setTimer(one.untilMs, nowMs)
      return one
    },
    /** Must be called once for each entry, even after its `end` was called. */
    remove(one: DeadlineEntry) {
      const { previous, next } = one
      if (previous === null) first = next
      else previous.next = next
      if (next === null) last = previous
      else next.previous = previous
      // Clear the links, so that a removed entry that is still referenced does not keep its neighbours in memory.
      one.previous = null
      one.next = null
      if (first !== null) return
      cancelTimer?.()
      cancelTimer = null
      whenEmpty()
    },
    /** Returns the entries in the order in which they were added. */
    all(): readonly DeadlineEntry[] {
      const all: DeadlineEntry[] = []
      for (let one = first; one !== null; one = one.next) all.push(one)
      return all
    },
    /** Sets a function that is called when the list becomes empty, or at once if it is empty. */
    onEmpty(run: () => void) {
      whenEmpty = run
      if (first === null) run()
    },
  }
}

/** An answer up to this length is read to its end, so that its connection can be used again. A longer answer ends the connection. */
const ANSWER_BYTES_MAX = 65_536
/** The most provisional (1xx) answers to one request. */
const PROVISIONAL_MAX = 100

interface PostTarget {
  readonly origin: string
  /** The path with the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Sent byte for byte. */
  readonly body: Uint8Array
}

interface PostHandlers {
  readonly now: () => number
  /** Says why the post may no longer be sent. Null: it may still be sent. Called when the post has a connection. */
  readonly refusal: () => SendFailure | null
  /** Opens a pool only to repeat this post. The post destroys the pool when it ends. */
  readonly openFresh: () => Dispatcher
  /** Turns the error that ended a request into the reason why there was no answer. */
  readonly failureOf: (error: unknown) => SendFailure
  /** Called once. `address`: see `AttemptResult`. */
  readonly onEnd: (outcome: AttemptOutcome, answerStart: Uint8Array, address: string | undefined) => void
}

/** Ends a post and its connection now. If a status was received, the status is the outcome. Otherwise `why` is the outcome. */
type EndPost = (why: SendFailure) => void

const EMPTY_BODY = new Uint8Array()
const TOO_LONG: SendFailure = { reason: 'bad_response', detail: 'TOO_LONG' }

/**
 * Makes one post through the dispatcher. It follows no redirect, decompresses nothing, and keeps only the first bytes of the answer. It does
 * not use undici's `request`, because the stream, the signal and the listeners that `request` makes cost more than the rest of a delivery.
 *
 * An endpoint may close an idle connection just when a post is written to it. If an earlier request had used the connection and no byte of
 * an answer came, the endpoint has most likely not seen the post. The post is then repeated once, without a pause, on a new connection.
 */
function startPost(
  dispatcher: Dispatcher,
  { origin, path, headers, body }: PostTarget,
  { now, refusal, openFresh, failureOf, onEnd }: PostHandlers,
): EndPost {
  let controller: Dispatcher.DispatchController | null = null
  let outcome: AttemptOutcome | null = null
  let provisional = 0
  let kept: Uint8Array[] | null = null
  let size = 0
  let isOver = false
  let refusedBy: string | undefined
  const connection = createReuseCheck()
  let fresh: Dispatcher | null = null
  const request: Dispatcher.DispatchOptions = { origin, path, method: 'POST', headers, body }

  function end(why: SendFailure): void {
    if (isOver) return
    isOver = true
    controller?.abort(new errors.RequestAbortedError())
    void fresh?.destroy()
    onEnd(
      outcome ?? failedOutcome(why),
      outcome === null || kept === null ? EMPTY_BODY : Buffer.concat(kept),
      connection.address() ?? refusedBy,
    )
  }

  function keep(chunk: Uint8Array): void {
    if (size < ANSWER_KEPT_BYTES) {
      kept ??= []
      kept.push(chunk.subarray(0, ANSWER_KEPT_BYTES - size))
    }
    size += chunk.byteLength
  }

  const handler: ConnectionUser = {
    onClient: connection.belongsTo,
    onRequestStart(started) {
      controller = started
      connection.begin()
      // The post was ended before it had a connection.
      if (isOver) started.abort(new errors.RequestAbortedError())
      const why = refusal()
      if (why !== null) end(why)
    },
    onResponseStart(_controller, status, answered) {
      if (status >= 200) outcome = outcomeOf(status, answered['retry-after'], now())
      else provisional += 1
      // Nobody can mend a redirect without its target, so the target is kept as the first line of the answer.
      const target = status >= 300 && status <= 399 ? answered.location : undefined
      if (typeof target === 'string') keep(Buffer.from(`Location: ${target}\n`))
      if (provisional > PROVISIONAL_MAX) end({ reason: 'bad_response', detail: 'ONLY_PROVISIONAL' })
    },
    onResponseData(_controller, chunk) {
      keep(chunk)
      if (size > ANSWER_BYTES_MAX) end(TOO_LONG)
    },
    onResponseEnd() {
      controller = null
      end(TOO_LONG)
    },
    onResponseError(_controller, error) {
      controller = null
      refusedBy = addressIn(error)
      if (isOver || fresh !== null || !connection.mayRepeat(error)) {
        end(failureOf(error))
        return
      }
      fresh = openFresh()
      fresh.dispatch(request, handler)
    },
  }
  dispatcher.dispatch(request, handler)
  return end
}

/** The status alone decides the outcome, even if the body breaks off later. */
function outcomeOf(status: number, retryAfter: string | string[] | undefined, nowMs: number): AttemptOutcome {
  if (status >= 200 && status <= 299) return { kind: 'accepted', status }
  return { kind: 'rejected', status, retryAfterMs: parseRetryAfter(typeof retryAfter === 'string' ? retryAfter : null, nowMs) }
}

/** Returns the address in an error of the operating system, such as the address that refused the connection. */
function addressIn(error: unknown): string | undefined {
  return error instanceof Error && 'address' in error && typeof error.address === 'string' ? error.address : undefined
}

function failedOutcome(failure: SendFailure): AttemptOutcome {
  return { kind: 'failed', ...failure }
}

/** The certificate authority `ca` is trusted for the target and for the proxy. Only the target gets the client certificate. */
interface ProxiedOptions extends TlsIdentity {
  /** The URL of the proxy, with user and password if it needs them. */
  readonly proxy: string
  /** The time limit for connecting, and for the proxy's answer to the request for a tunnel. */
  readonly timeoutMs: number
  /** The most connections per origin. Absent: no limit here, because the caller limits them. */
  readonly connections?: number
  /** Makes the pool of connections to a target. */
  readonly createPool: CreatePool
}

/** Creates a dispatcher that sends through an HTTP proxy: https through a tunnel that the proxy cannot read, http as requests to the proxy. */
export function createProxiedAgent({ proxy, ca, client, timeoutMs, connections, createPool }: ProxiedOptions): Dispatcher {
  // Without `rejectUnauthorized`, the environment variable `NODE_TLS_REJECT_UNAUTHORIZED` could turn the check of certificates off.
  const checked = { rejectUnauthorized: true, timeout: timeoutMs }
  const proxyTls = { ...checked, secureContext: createTlsContext({ ca }) }
  return new ProxyAgent({
    uri: proxy,
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
    requestTls: client === undefined ? proxyTls : { ...checked, secureContext: createTlsContext({ ca, client }) },
    proxyTls,
    ...(connections === undefined ? {} : { connections }),
    factory: createPool,
    // Without this limit undici would wait for a silent proxy long after the callers gave up.
    clientFactory: (origin, options) => new Pool(origin, { ...options, headersTimeout: timeoutMs }),
  })
}
