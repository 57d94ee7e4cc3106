import { Agent, type Dispatcher } from 'undici'
import type { AttemptResult } from '../domain/delivery.ts'
import type { Clock, Route } from '../flow/ports.ts'
import { type StartTimer, startRealTimer } from './deadline.ts'
import type { EgressGuard } from './egress-guard.ts'
import { createGuardedConnector } from './guarded-connector.ts'
import { type Answer, type Post, startPost, unanswered } from './post.ts'
import { createProxiedAgent } from './proxied-agent.ts'
import { failureOf, proxiedFailureOf, type SendFailure } from './send-failure.ts'

export interface SendRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Sent byte for byte. */
  readonly body: Uint8Array
  readonly route?: Route
}

export interface SenderOptions {
  readonly guard: EgressGuard
  /** Over the whole exchange: resolving, connecting, sending, the answer and its body. */
  readonly timeoutMs: number
  readonly clock: Clock
  readonly startTimer?: StartTimer
}

/** Posts to endpoints. `close` ends what is in flight; whatever is sent afterwards is interrupted. `retire` lets what is in flight end first. */
export interface Sender {
  /** Never rejects for what the other side, the network or the guard does: failure is a value. */
  send(request: SendRequest): Promise<AttemptResult>
  close(): Promise<void>
  retire(): Promise<void>
}

const INTERRUPTED: SendFailure = { reason: 'interrupted', detail: 'CLOSED' }
const TIMED_OUT: SendFailure = { reason: 'timeout', detail: 'DEADLINE' }

export function createSender({ guard, timeoutMs, clock, startTimer = startRealTimer }: SenderOptions): Sender {
  const agents = createAgents(guard, timeoutMs)
  const running = new Set<Post>()
  let onIdle: (() => void) | null = null
  let isClosed = false

  async function exchange({ url, headers, body, route = {} }: SendRequest): Promise<Answer> {
    if (isClosed) return unanswered(INTERRUPTED)
    const isProxied = route.proxy !== undefined
    const verdict = isProxied ? guard.checkProxiedUrl(url) : guard.checkUrl(url)
    if (!verdict.ok) return unanswered({ reason: 'forbidden', detail: verdict.reason })
    const reading = { now: clock.now, failureOf: isProxied ? proxiedFailureOf : failureOf }
    const post = startPost(agents.of(route), { url: verdict.url, headers, body }, reading)
    running.add(post)
    const cancelTimer = startTimer(timeoutMs, () => post.end(TIMED_OUT))
    const answer = await post.answer
    cancelTimer()
    running.delete(post)
    if (running.size === 0) onIdle?.()
    return answer
  }

  async function close(): Promise<void> {
    isClosed = true
    for (const post of running) post.end(INTERRUPTED)
    await agents.destroy()
  }

  return {
    async send(request) {
      const startedMs = clock.monotonic()
      const { outcome, answerStart } = await exchange(request)
      return { ...outcome, answerStart, durationMs: clock.monotonic() - startedMs }
    },
    async retire() {
      await new Promise<void>((resolve) => {
        onIdle = resolve
        if (running.size === 0) resolve()
      })
      await close()
    },
    close,
  }
}

/** One pool of connections per route, kept: a pool per delivery would leak. How many at once is not decided here. */
function createAgents(guard: EgressGuard, timeoutMs: number) {
  const agents = new Map<string, Dispatcher>()

  function open({ proxy, ca }: Route): Dispatcher {
    if (proxy !== undefined) return createProxiedAgent({ proxy, ca, timeoutMs })
    const connect = createGuardedConnector(guard, { timeoutMs, ...(ca === undefined ? {} : { ca }) })
    // The deadline bounds the whole exchange; times of idling bound nothing.
    return new Agent({ connect, allowH2: false, headersTimeout: 0, bodyTimeout: 0 })
  }

  return {
    of(route: Route): Dispatcher {
      const name = `${route.proxy ?? ''} ${route.ca ?? ''}`
      const agent = agents.get(name) ?? open(route)
      agents.set(name, agent)
      return agent
    },
    async destroy(): Promise<void> {
      await Promise.all([...agents.values()].map((agent) => agent.destroy()))
    },
  }
}
