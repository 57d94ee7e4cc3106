import { Agent, type Dispatcher, request } from 'undici'
import { ANSWER_KEPT_BYTES, type AttemptOutcome, type AttemptResult } from '../domain/delivery.ts'
import { parseRetryAfter } from '../domain/retry-after.ts'
import type { Clock, Route } from '../flow/ports.ts'
import { createDeadline, type Deadline, orWhenAborted, type StartTimer, startRealTimer } from './deadline.ts'
import type { EgressGuard } from './egress-guard.ts'
import { createGuardedConnector } from './guarded-connector.ts'
import { createProxiedAgent } from './proxied-agent.ts'
import { failureOf, proxiedFailureOf, type SendFailure } from './send-failure.ts'

/** Longest answer that is read to its end, so that its connection can be used again; of a longer one the rest is dropped with it. */
const ANSWER_BYTES_MAX = 65_536
/** Most provisional (1xx) answers to one request. */
const PROVISIONAL_MAX = 100

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

const interrupted: SendFailure = { reason: 'interrupted', detail: 'CLOSED' }

interface Answer {
  readonly outcome: AttemptOutcome
  readonly answerStart: Uint8Array
}

export function createSender({ guard, timeoutMs, clock, startTimer = startRealTimer }: SenderOptions): Sender {
  const agents = createAgents(guard, timeoutMs)
  const running = new Set<Deadline>()
  let onIdle: (() => void) | null = null
  let isClosed = false

  async function exchange(sending: SendRequest, deadline: Deadline): Promise<Answer> {
    if (isClosed) return unanswered(interrupted)
    const { url, headers, body, route = {} } = sending
    const isProxied = route.proxy !== undefined
    const verdict = isProxied ? guard.checkProxiedUrl(url) : guard.checkUrl(url)
    if (!verdict.ok) return unanswered({ reason: 'forbidden', detail: verdict.reason })
    let provisional = 0
    const onInfo = (): void => {
      provisional += 1
      if (provisional > PROVISIONAL_MAX) deadline.abort()
    }
    const { signal } = deadline
    let response: Dispatcher.ResponseData | null = null
    try {
      // Neither follows redirects nor inflates. Until it has a connection it does not heed the signal.
      const answered = request(verdict.url, { method: 'POST', headers, body, dispatcher: agents.of(route), signal, onInfo })
      response = await orWhenAborted(answered, signal, null)
    } catch (error) {
      if (!signal.aborted) return unanswered(isProxied ? proxiedFailureOf(error) : failureOf(error))
    }
    if (response !== null) return { outcome: outcomeOf(response, clock.now()), answerStart: await readStart(response.body) }
    if (isClosed) return unanswered(interrupted)
    const isStorm = provisional > PROVISIONAL_MAX
    return unanswered(isStorm ? { reason: 'bad_response', detail: 'ONLY_PROVISIONAL' } : { reason: 'timeout', detail: 'DEADLINE' })
  }

  async function close(): Promise<void> {
    isClosed = true
    for (const deadline of running) deadline.abort()
    await agents.destroy()
  }

  return {
    async send(sending) {
      const startedMs = clock.monotonic()
      const deadline = createDeadline(timeoutMs, startTimer)
      running.add(deadline)
      deadline.start()
      try {
        const { outcome, answerStart } = await exchange(sending, deadline)
        return { ...outcome, answerStart, durationMs: clock.monotonic() - startedMs }
      } finally {
        running.delete(deadline)
        deadline.end()
        if (running.size === 0) onIdle?.()
      }
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

/** The status says it all: once it is there, nothing that happens to the body changes what it says. */
function outcomeOf({ statusCode: status, headers }: Dispatcher.ResponseData, nowMs: number): AttemptOutcome {
  if (status >= 200 && status <= 299) return { kind: 'accepted', status }
  const retryAfter = headers['retry-after']
  return { kind: 'rejected', status, retryAfterMs: parseRetryAfter(typeof retryAfter === 'string' ? retryAfter : null, nowMs) }
}

/** The first bytes of a body, read to its end if that is near; leaving the loop early, a cut and the deadline all end its connection. */
async function readStart(body: AsyncIterable<unknown>): Promise<Uint8Array> {
  const kept: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of body) {
      if (!(chunk instanceof Uint8Array)) break
      if (size < ANSWER_KEPT_BYTES) kept.push(chunk.subarray(0, ANSWER_KEPT_BYTES - size))
      size += chunk.byteLength
      if (size > ANSWER_BYTES_MAX) break
    }
  } catch {
    // What came before the cut is kept all the same.
  }
  return Buffer.concat(kept)
}

function unanswered(failure: SendFailure): Answer {
  return { outcome: { kind: 'failed', ...failure }, answerStart: new Uint8Array() }
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
