import { Agent } from 'undici'
import type { Carrier, Clock, Log } from '../flow/ports.ts'
import { createCallBudget } from './call-budget.ts'
import { createCallQueue } from './call-queue.ts'
import { createCarrierNews } from './carrier-news.ts'
import { createDeadline, type Deadline, type StartTimer, startRealTimer } from './deadline.ts'
import { createExchange } from './exchange.ts'
import { askStatus, type StatusPorts } from './status-call.ts'
import { createTokenClient } from './token-client.ts'

const WAITING_MAX = 10_000

export interface CarrierOptions {
  readonly baseUrl: string
  readonly authUrl: string
  readonly username: string
  /** Read at every token request, so that a new one needs no restart. */
  readonly password: () => string
  /** Over everything one question does once it left: connecting, headers, body, retries. An app's waiting counts too. */
  readonly timeoutMs: number
  readonly ratePerSecond: number
  /** By UTC day. */
  readonly callsPerDay: number
  readonly concurrency: number
  readonly clock: Clock
  readonly log: Log
  /** Calls that earlier runs already made today. */
  readonly initialCallsToday?: number
  /** Certificates (PEM) trusted in place of the well-known authorities'. */
  readonly ca?: string
  readonly startTimer?: StartTimer
}

/** The carrier as it is on the network. `close` ends what is in flight; afterwards every question is unavailable. */
export interface RemoteCarrier extends Carrier {
  close(): Promise<void>
}

/** Everything that leaves for the carrier, token requests included, goes through one budget and one pool of connections. */
export function createCarrier(options: CarrierOptions): RemoteCarrier {
  const { clock, log, timeoutMs, callsPerDay, startTimer = startRealTimer } = options
  const agent = createAgent(options)
  const budget = createCallBudget(options)
  const queue = createCallQueue({ budget, clock, startTimer, pausePatienceMs: timeoutMs, waitingMax: WAITING_MAX })
  const exchange = createExchange({ agent, queue, clock })
  const deadlines = createDeadlines(timeoutMs, startTimer)
  const tokens = createTokenClient({ ...options, exchange, openDeadline: () => deadlines.open() })
  const ports: StatusPorts = { baseUrl: options.baseUrl.replace(/\/+$/, ''), exchange, tokens, queue, clock }
  const news = createCarrierNews(clock, log)

  return {
    async fetchAll({ identifier, language, priority, signal }) {
      const deadline = deadlines.open(signal)
      // An app waits for the whole of it; of the schedule nobody minds how long it waits for its turn.
      if (priority === 'app') deadline.start()
      const giveUpAtMs = priority === 'app' ? clock.monotonic() + timeoutMs : null
      try {
        const outcome = await askStatus(ports, { identifier, language, priority, giveUpAtMs, deadline })
        // Nobody is to blame for a question that was taken back.
        const takenBack = signal?.aborted === true || deadlines.closed()
        return outcome.kind === 'unavailable' && takenBack ? { kind: 'unavailable', reason: 'timeout' } : news.tell(outcome)
      } finally {
        deadline.end()
      }
    },
    state: () => ({
      credentials: tokens.credentials(),
      ...news.latest(),
      budget: { waiting: queue.waiting(), inFlight: budget.inFlight(), callsToday: budget.callsToday(clock.now()), callsPerDay },
    }),
    async close() {
      deadlines.close()
      await agent.destroy()
    },
  }
}

function createAgent({ concurrency, timeoutMs, ca }: CarrierOptions): Agent {
  return new Agent({
    connections: concurrency,
    allowH2: false,
    // Said out loud, because the environment could otherwise turn the check off.
    connect: { timeout: timeoutMs, rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) },
  })
}

/** Every deadline that runs, so that closing can end them all, and those opened afterwards at once. */
function createDeadlines(timeoutMs: number, startTimer: StartTimer) {
  const running = new Set<Deadline>()
  let closed = false
  return {
    open(outer?: AbortSignal): Deadline {
      const deadline = createDeadline(timeoutMs, startTimer, outer)
      running.add(deadline)
      if (closed) deadline.abort()
      return {
        ...deadline,
        end() {
          running.delete(deadline)
          deadline.end()
        },
      }
    },
    closed: () => closed,
    close() {
      closed = true
      for (const deadline of running) deadline.abort()
    },
  }
}
