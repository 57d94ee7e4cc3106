import { Agent, type Dispatcher } from 'undici'
import type { CallSpender } from '../../domain/admin/tally.ts'
import type { CarrierMemory } from '../../domain/polling/call-budget.ts'
import type { CarrierOutage, CarrierState, UnavailableReason } from '../../domain/polling/carrier-answer.ts'
import type { Carrier, Vault } from '../../flow/ports.ts'
import { createDeadline, type Deadline, type StartTimer, startRealTimer } from '../../outbound/deadline.ts'
import { ANY_HOST, type EgressGuard } from '../../outbound/egress-guard.ts'
import { createGuardedConnector } from '../../outbound/guarded-connector.ts'
import { createPoolFactory } from '../../outbound/send-failure.ts'
import { createProxiedAgent } from '../../outbound/sender.ts'
import type { SharedCarrier } from '../../store/polling/shared-carrier.ts'
import { openBudget } from '../budget/carrier-budget.ts'
import { type CallLimits, remainingWaitMs } from '../budget/own-budget.ts'
import type { CredentialOptions } from '../token/credentials.ts'
import { createTokenClient, createTokenShare, type TokenClient } from '../token/token-client.ts'
import { createCallQueue } from './call-queue.ts'
import { type CarrierBreakerPorts, createCarrierBreaker } from './carrier-breaker.ts'
import { type CarrierLog, createCarrierLog } from './carrier-log.ts'
import { createAskingClock, createCarrierTime } from './carrier-time.ts'
import { createExchange } from './exchange.ts'
import { askOnce, askStatus, type StatusCall, type StatusOutcome, type StatusPorts } from './status-call.ts'

const WAITING_MAX = 10_000
/** A call that was cut off counts against the carrier only if the carrier had at least this share of the time limit to answer. */
const FAIR_SHARE = 1 / 2

/** The settings of the client. Durations in milliseconds. */
export interface CarrierOptions
  extends CallLimits,
    Pick<CredentialOptions, 'authUrl' | 'username' | 'password' | 'clock' | 'log'>,
    Pick<CarrierBreakerPorts, 'answeredBefore' | 'isErased'> {
  readonly baseUrl: string
  /** The time limit for a call and its retries, from connecting to the end of the body. For an app it includes the wait in the queue. */
  readonly timeoutMs: number
  readonly onCall?: (spender: CallSpender) => void
  readonly onPolled?: StatusPorts['onPolled']
  /** The state that an earlier run saved: the calls of the day, pauses and refused credentials still count. */
  readonly memory?: CarrierMemory | null
  /** Saves the state for the next run. A call, a pause or a refusal takes effect only after it is saved. */
  readonly remember?: (memory: CarrierMemory) => Promise<void>
  /** The token and the budget that replicas share. `vault` encrypts the token. Absent: this process calls the carrier alone. */
  readonly shared?: SharedCarrier & { readonly vault: Pick<Vault, 'seal' | 'open'> }
  /** A private certificate authority (PEM), trusted in addition to the public authorities. */
  readonly ca?: string | undefined
  readonly proxy?: string
  /** Resolves the carrier's host name and checks the addresses. Absent: the system resolves the name, and every address is allowed. */
  readonly hosts?: Pick<EgressGuard, 'checkHost'>
  readonly startTimer?: StartTimer
}

export interface CallFailure {
  readonly reason: UnavailableReason
  /** A code, such as `ECONNREFUSED`, or the status of the answer. */
  readonly detail: string
}

/** The carrier, called over HTTP. `close` ends all calls in flight. After that, every call returns `unavailable`. */
export type RemoteCarrier = ReturnType<typeof createCarrier>

/** All calls to the carrier, including token requests, share one budget and one pool of connections. */
export function createCarrier(options: CarrierOptions) {
  const { clock, log, timeoutMs, callsPerDay, startTimer = startRealTimer, memory = null } = options
  const connections = createConnections(options)
  const left = (untilMs: number | null): number => (memory === null ? 0 : remainingWaitMs(untilMs, memory.atMs, clock.now()))
  const asking = createAskingClock(clock, memory)
  const time = createCarrierTime(clock)
  const budgetOptions = { ...options, startTimer, tokens: () => tokens, remember: options.remember, asking }
  const budget = openBudget(budgetOptions, options.shared, memory, left(memory?.pausedUntilMs ?? null))
  const waiting = { pausePatienceMs: timeoutMs, waitingMax: WAITING_MAX }
  const queue = createCallQueue({ budget: budget.slots, clock, startTimer, ...waiting, writeDown: budget.reserve })
  const exchange = createExchange({
    agent: connections.current,
    queue,
    clock,
    fairShareMs: timeoutMs * FAIR_SHARE,
    asking,
    onCall: options.onCall,
    time,
  })
  const deadlines = createDeadlines(timeoutMs, startTimer)
  const tokens: TokenClient = createTokenClient({
    ...options,
    earlier: memory === null ? null : { ...memory, pausedForMs: left(memory.tokenPausedUntilMs) },
    keep: budget.keep,
    share: options.shared === undefined ? null : createTokenShare(options.shared, options),
    startTimer,
    exchange,
    openDeadline: () => deadlines.open(),
  })
  const pause = async (waitMs: number): Promise<void> => {
    queue.pause(waitMs)
    await budget.keep()
  }
  const ports: StatusPorts = { baseUrl: options.baseUrl.replace(/\/+$/, ''), exchange, tokens, pause, clock, onPolled: options.onPolled }
  const carrierLog = createCarrierLog(clock, log)
  const { fetchAll, tryQuestion, breaker } = createAsking(options, { ports, deadlines, carrierLog })

  return {
    fetchAll,
    /**
     * Requests a token with the present password, unless an earlier refusal forbids it. The request is a call of the budget, and its result changes
     * `state`. Null: there is a token.
     */
    async logIn(): Promise<CallFailure | null> {
      const deadline = deadlines.open()
      try {
        const login = await tokens.logIn(deadline.signal)
        if (login.kind !== 'none') carrierLog.loggedIn()
        else if (!deadlines.closed()) carrierLog.loginFailed(login)
        return login.kind === 'none' ? { reason: login.reason, detail: login.detail } : null
      } finally {
        deadline.end()
      }
    },
    tryQuestion,
    /** The carrier's clock minus ours, by its last answer; -2000: the carrier is 2 s behind. Null: no answer had a time yet. */
    aheadMs: time.aheadMs,
    /** Saves the current state for the next run. */
    keep: budget.keep,
    /** Logs how many calls have failed in an outage, at most once a minute. Call it every few seconds. */
    logOutage() {
      const { sinceMs, unanswered } = breaker.state()
      carrierLog.flush(sinceMs ?? unanswered?.sinceMs ?? null)
    },
    /** See `CarrierBreaker`. */
    resume(outage: CarrierOutage | null) {
      if (breaker.resume(outage)) carrierLog.resume(outage)
    },
    lookAgain: breaker.lookAgain,
    /** Trusts another private certificate authority (PEM), or none, from the next connection on. Running calls finish. */
    replaceAuthority: connections.replace,
    state: (): CarrierState => ({
      breaker: breaker.state(),
      ...tokens.state(),
      ...carrierLog.latest(),
      budget: { waiting: queue.waiting(), inFlight: budget.inFlight(), callsToday: budget.callsToday(), callsPerDay },
    }),
    async close() {
      deadlines.close()
      await connections.destroy()
      await budget.close()
    },
  }
}

interface TriedQuestion {
  readonly identifier: string
  readonly language: string
  readonly mayCount: boolean
}

interface AskingParts {
  readonly ports: StatusPorts
  readonly deadlines: ReturnType<typeof createDeadlines>
  readonly carrierLog: CarrierLog
}

/** Creates the part that asks questions, behind the breaker. */
function createAsking({ clock, log, timeoutMs, answeredBefore, isErased }: CarrierOptions, { ports, deadlines, carrierLog }: AskingParts) {
  /** Null: the caller or a stop of the relay has ended the call. Then the carrier did not fail, and nothing may count it. */
  const ask = async (call: StatusCall, signal?: AbortSignal): Promise<StatusOutcome | null> => {
    const answered = await askStatus(ports, call)
    const isWithdrawn = signal?.aborted === true || deadlines.closed()
    return answered.kind === 'unavailable' && isWithdrawn ? null : answered
  }
  const check: CarrierBreakerPorts['check'] = async (question) => {
    const deadline = deadlines.open()
    try {
      const outcome = await ask({ ...question, priority: 'app', spender: 'schedule', giveUpAtMs: null, deadline })
      if (outcome !== null) carrierLog.record(outcome)
      return outcome
    } finally {
      deadline.end()
    }
  }
  const breaker = createCarrierBreaker({ clock, log, answeredBefore, isErased, check })
  const fetchAll: Carrier['fetchAll'] = async ({ identifier, language, priority, spender, signal, ofNobody = false }) => {
    const deadline = deadlines.open(signal)
    // For a scheduled poll the time limit starts when the request is sent.
    if (priority === 'app') deadline.start()
    const giveUpAtMs = priority === 'app' ? clock.monotonic() + timeoutMs : null
    try {
      const call = { identifier, language, priority, spender, giveUpAtMs, deadline, ofNobody }
      const outcome = await breaker.guard(call, () => ask(call, signal))
      return outcome === null ? { kind: 'unavailable', reason: 'timeout' } : note(outcome, ofNobody)
    } finally {
      deadline.end()
    }
  }
  const note = (outcome: StatusOutcome, ofNobody: boolean) =>
    outcome.kind === 'unavailable' || breaker.isTelling(outcome, ofNobody) ? carrierLog.record(outcome) : outcome
  /**
   * Asks one question to learn whether the carrier answers: a single call of the budget, even while calls pause. `mayCount`: the carrier should
   * answer it, because a parcel has the number, so a failure counts; an answer does as `isAnswer` says. Null: it was answered.
   */
  const tryQuestion = async ({ mayCount, ...question }: TriedQuestion): Promise<CallFailure | null> => {
    const deadline = deadlines.open()
    deadline.start()
    try {
      const giveUpAtMs = clock.monotonic() + timeoutMs
      const outcome = await askOnce(ports, { ...question, priority: 'app', spender: 'operator', giveUpAtMs, deadline })
      if ((mayCount || outcome.kind !== 'unavailable') && !deadlines.closed()) {
        breaker.checked({ ...question, ofNobody: !mayCount }, outcome)
        note(outcome, !mayCount)
      }
      return outcome.kind === 'unavailable' ? { reason: outcome.reason, detail: outcome.detail } : null
    } finally {
      deadline.end()
    }
  }
  return { fetchAll, tryQuestion, breaker }
}

function createAgent({ clock, concurrency, timeoutMs, ca, proxy, hosts = ANY_HOST }: CarrierOptions): Dispatcher {
  const createPool = createPoolFactory(clock)
  if (proxy !== undefined) return createProxiedAgent({ proxy, ca, timeoutMs, connections: concurrency, createPool })
  const connect = createGuardedConnector(hosts, { timeoutMs, ca })
  return new Agent({ connections: concurrency, allowH2: false, connect, factory: createPool })
}

/** When the authority is replaced, the old connections stay open until their calls are over. */
function createConnections(options: CarrierOptions) {
  let { ca } = options
  let agent = createAgent(options)
  const retired = new Set<Dispatcher>()
  return {
    current: () => agent,
    replace(next: string | undefined): void {
      if (next === ca) return
      const before = agent
      ca = next
      agent = createAgent({ ...options, ca })
      retired.add(before)
      void before.close().finally(() => retired.delete(before))
    },
    async destroy(): Promise<void> {
      await Promise.all([agent, ...retired].map((one) => one.destroy()))
    },
  }
}

/** `close` ends the running calls. After that, a new deadline ends at once. */
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
