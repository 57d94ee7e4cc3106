import { type Dispatcher, Pool } from 'undici'
import type { AttemptResult } from '../domain/delivery/delivery.ts'
import type { PostRequest, Route } from '../domain/delivery/delivery-request.ts'
import type { DeliverySender } from '../flow/delivery/ports.ts'
import type { Clock } from '../flow/ports.ts'
import { type CreatePool, createPoolFactory } from './connection-use.ts'
import { type StartTimer, startRealTimer } from './deadline.ts'
import type { EgressGuard } from './egress-guard.ts'
import { createGuardedConnector } from './guarded-connector.ts'
import { EMPTY_BODY, type EndPost, failedOutcome, startPost } from './post.ts'
import { createProxiedAgent } from './proxied-agent.ts'
import { failureOf, proxiedFailureOf, type SendFailure } from './send-failure.ts'

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

interface DeadlineList {
  add(end: () => void, nowMs: number): DeadlineEntry
  /** Must be called once for each entry, even after its `end` was called. */
  remove(one: DeadlineEntry): void
  /** Returns the entries in the order in which they were added. */
  all(): readonly DeadlineEntry[]
  /** Sets a function that is called when the list becomes empty, or at once if it is empty. */
  onEmpty(run: () => void): void
}

/**
 * Ends posts that take too long. All posts have the same time limit, so the oldest post is due first, and one timer is enough.
 *
 * The entries are a linked list. Thousands of posts may begin per second, and at this rate a set or a map keeps many removed entries in memory.
 */
export function createDeadlineList(timeoutMs: number, startTimer: StartTimer): DeadlineList {
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
    add(end, nowMs) {
      const one: DeadlineEntry = { end, untilMs: nowMs + timeoutMs, previous: last, next: null }
      if (last === null) first = one
      else last.next = one
      last = one
      if (cancelTimer === null) setTimer(one.untilMs, nowMs)
      return one
    },
    remove(one) {
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
    all() {
      const all: DeadlineEntry[] = []
      for (let one = first; one !== null; one = one.next) all.push(one)
      return all
    },
    onEmpty(run) {
      whenEmpty = run
      if (first === null) run()
    },
  }
}
