import type {
  ClaimedDelivery,
  DispatchRound,
  DispatchRoundReport,
  SettledAttempt,
  Undelivered,
} from '../../../domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import { createFailureLog } from '../../log-digest.ts'
import type { Relay, Writes } from '../../relay-part.ts'
import type { EndpointQueues, EndpointRates } from './endpoint-queues.ts'
import type { EndpointLog } from './send-delivery.ts'

/** The endpoints to which this replica delivers. */
export interface HeldEndpoints {
  /** Null: all endpoints. */
  endpoints(): readonly string[] | null
  /** Whether an attempt to this endpoint may begin now. */
  delivers(endpointId: string): boolean
  /**
   * Rises when this replica loses all its endpoints. Another replica may then send the deliveries that this replica has claimed. So this
   * replica must not save their results.
   */
  term(): number
  /** The signal is aborted while this replica may do nothing for its endpoints. */
  signal(): AbortSignal
}

export interface DispatchRoundsPorts extends Pick<Relay, 'clock' | 'log'>, Writes<'dispatchRound'> {
  readonly queues: EndpointQueues
  readonly rates: EndpointRates
  readonly endpointLog: EndpointLog
  readonly times: RoundTimes
  readonly held: HeldEndpoints
}

/** A round settles ended attempts and claims the next deliveries, in one transaction of the writer. */
export type DispatchRounds = ReturnType<typeof createDispatchRounds>

export function createDispatchRounds(ports: DispatchRoundsPorts) {
  const { write, clock, queues, rates, times, held } = ports
  let endpoints: readonly EndpointState[] = []
  const ended = createEndedAttempts(ports)
  /**
   * `reviews` counts the calls of `review`. `reviewed`: the value of `reviews` when the last successful round began. `changed`: the value of
   * `reviews` after the last `review('endpoints')`.
   */
  let reviews = 0
  let reviewed = 0
  let changed = 0
  let isRunning = false
  const drains = createDrains(queues)
  const awaited = createAwaited()
  const failures = createRoundFailures(ports)

  function takeBack(settled: readonly SettledAttempt[]): void {
    queues.notSettled(settled)
    ended.putBack(settled)
    // Start no attempts now, because their results could not be stored.
    queues.releaseAll()
    times.retryLater()
  }

  /** Returns the request of the next round; null: there is nothing to settle, and nothing may be claimed. */
  function nextRound(claimsMax: number): DispatchRound | null {
    const endpointIds = held.endpoints()
    const settled = ended.take()
    // After `review`, a replica without endpoints runs a round too: the change may concern an endpoint to which no replica delivers.
    if (endpointIds?.length === 0 && settled.length === 0 && reviewed === reviews) return null
    queues.settling()
    const round = { settled, inFlight: queues.inFlight(), allowance: rates.allowance(endpoints), claimsMax, nowMs: clock.now() }
    return endpointIds === null ? round : { ...round, held: endpointIds }
  }

  async function exchange(claimsMax: number): Promise<readonly ClaimedDelivery[]> {
    const asOf = reviews
    const term = held.term()
    times.clear()
    const beganMs = clock.monotonic()
    const round = nextRound(claimsMax)
    if (round === null) return []
    try {
      const report = await failures.run(round.settled.length, () => write.dispatchRound(round))
      queues.settled(round.settled)
      // This replica lost its endpoints during the round. So its new claims are void.
      if (term !== held.term()) return []
      if (report.isBusy === true) times.spaceOut(beganMs)
      endpoints = report.endpoints
      queueClaims(report, ports)
      reviewed = asOf
      return report.claimed
    } catch {
      takeBack(round.settled)
      return []
    }
  }

  return {
    /** Keeps an ended attempt for the next round. Returns whether no other attempt is kept. */
    add: ended.add,
    hasEnded: () => ended.count() > 0,
    /** Call it when the `endpoints`, or only the `order` of waiting deliveries, may have changed. */
    review(what: 'order' | 'endpoints') {
      reviews += 1
      if (what === 'endpoints') changed = reviews
    },
    /** Whether a round that began after the last call of `review` has reported. */
    isReviewed: () => reviewed === reviews,
    /** Resolves at the end of a round that began after the last call of `review`, even if the round fails. */
    whenReviewed: () => awaited.open(reviews),
    isAwaited: awaited.isAny,
    /** Whether a round that began after the last `review('endpoints')` has reported. */
    areEndpointsKnown: () => reviewed >= changed,
    /** See `Dispatcher`. */
    unwritten(): Undelivered | null {
      const sinceMs = failures.sinceMs()
      return sinceMs === null ? null : { sinceMs, results: ended.count() }
    },
    isDue: () => times.isLookDue() || (ended.count() > 0 && (times.isWaitOver() || queues.isRoundWorthwhile())),
    /** Call it after `HeldEndpoints` has dropped an endpoint. Resolves when nothing is under way to it and all its results are stored. */
    drained(endpointId: string) {
      queues.releaseSurplus()
      const drained = drains.open(endpointId)
      if (!isRunning) drains.check()
      return drained
    },
    /** Runs a round and returns its claims. If the store fails, returns none and keeps ended attempts for the next round. Never rejects. */
    async run(claimsMax: number): Promise<readonly ClaimedDelivery[]> {
      isRunning = true
      const asOf = reviews
      const claimed = await exchange(claimsMax)
      isRunning = false
      awaited.close(asOf)
      drains.check()
      return claimed
    },
  }
}

/** Keeps ended attempts until their results are stored. If this replica loses its endpoints first, drops them. */
function createEndedAttempts({ held, queues, times }: Pick<DispatchRoundsPorts, 'held' | 'queues' | 'times'>) {
  let attempts: SettledAttempt[] = []
  let term = held.term()
  return {
    count: () => attempts.length,
    add(attempt: SettledAttempt): boolean {
      const isFirst = attempts.length === 0
      if (isFirst) times.beginWait()
      attempts.push(attempt)
      return isFirst
    },
    take(): readonly SettledAttempt[] {
      if (term !== held.term()) {
        term = held.term()
        // Another replica makes these attempts again. So drop their results, and let no endpoint wait for them.
        queues.settled(attempts)
        attempts = []
        queues.releaseAll()
      }
      const taken = attempts
      attempts = []
      return taken
    },
    putBack(settled: readonly SettledAttempt[]): void {
      attempts = [...settled, ...attempts]
    },
  }
}

function createDrains(queues: Pick<EndpointQueues, 'isIdle'>) {
  const waiting = new Map<string, PromiseWithResolvers<void>>()
  return {
    open(endpointId: string): Promise<void> {
      const drain = waiting.get(endpointId) ?? Promise.withResolvers<void>()
      waiting.set(endpointId, drain)
      return drain.promise
    },
    check(): void {
      for (const [endpointId, drain] of waiting) {
        if (!queues.isIdle(endpointId)) continue
        waiting.delete(endpointId)
        drain.resolve()
      }
    },
  }
}

function createAwaited() {
  let waiting: { readonly change: number; readonly resolve: () => void }[] = []
  return {
    open: (change: number): Promise<void> => new Promise((resolve) => waiting.push({ change, resolve })),
    isAny: () => waiting.length > 0,
    /** Call it when a round has ended. `change`: the value of `reviews` when the round began. */
    close(change: number): void {
      const closed = waiting.filter((one) => one.change <= change)
      waiting = waiting.filter((one) => one.change > change)
      for (const { resolve } of closed) resolve()
    },
  }
}

function queueClaims(report: DispatchRoundReport, { clock, queues, rates, endpointLog, times }: DispatchRoundsPorts): void {
  queues.update(report.endpoints, report.more)
  for (const { endpointId } of report.claimed) rates.started(endpointId)
  queues.claimed(report.claimed)
  const waitMs = rates.waitMs()
  if (waitMs !== null) times.lookAt(clock.now() + waitMs)
  endpointLog.update(report.endpoints)
  if (report.nextAtMs !== null) times.lookAt(report.nextAtMs)
  if (queues.releaseSurplus() + queues.releaseOvertaken(report.overtaken) > 0) times.lookAt(clock.now())
}

const UNWRITTEN = 'the results of deliveries could not be written down; retrying'
const UNCLAIMED = 'the next deliveries could not be read; retrying'
const LOST = 'this replica lost its endpoints before it had written down results: a replica that takes over sends these deliveries again'

/** Logs failed rounds. A round that fails because another replica takes over is no error: that replica sends the deliveries again. */
export function createRoundFailures({
  log,
  clock,
  held,
}: Pick<Relay, 'log' | 'clock'> & { readonly held: Pick<HeldEndpoints, 'term' | 'signal'> }) {
  const failures = createFailureLog({ log, clock })
  let isLossLogged = false
  let sinceMs: number | null = null
  function add(err: unknown, results: number, isLost: boolean): void {
    if (!isLost) sinceMs ??= clock.now()
    if (!isLost) failures.add('error', { err, results }, results > 0 ? UNWRITTEN : UNCLAIMED)
    else if (results > 0 && !isLossLogged) {
      log.warn({ results }, LOST)
      isLossLogged = true
    } else log.debug({ err, results }, 'a dispatch round failed')
  }
  return {
    /** When the rounds began to fail because of the store, epoch milliseconds; null: the last one did not. */
    sinceMs: () => sinceMs,
    /** `results`: how many results the round stores. Rejects with the round's error. */
    async run<Report>(results: number, round: () => Promise<Report>): Promise<Report> {
      const term = held.term()
      try {
        const report = await round()
        isLossLogged = false
        sinceMs = null
        return report
      } catch (error) {
        add(error, results, term !== held.term() || held.signal().aborted)
        throw error
      }
    },
  }
}

interface RoundTimesPorts extends Pick<Relay, 'clock'> {
  /** Asks for another pass of the dispatcher at a wall-clock time. */
  readonly wake: (atMs: number) => void
}

/** Decides when the dispatcher starts its next round. Times for `lookAt` are epoch milliseconds. */
export type RoundTimes = ReturnType<typeof createRoundTimes>

/** How long to wait after a failure of the store. */
const RETRY_MS = 1000
/** How long an ended attempt waits for others to end, so that one round settles them all. */
const WAIT_MS = 5
/** The least time between the starts of two rounds while many pushes arrive. Fewer and larger rounds delay the senders of pushes less. */
const BUSY_ROUND_MS = 10

export function createRoundTimes({ clock, wake }: RoundTimesPorts) {
  let lookAtMs = Number.NEGATIVE_INFINITY
  /** Monotonic milliseconds, like `restUntilMs`. */
  let waitUntilMs = 0
  let restUntilMs = Number.NEGATIVE_INFINITY

  function lookAt(atMs: number): void {
    lookAtMs = Math.min(lookAtMs, atMs)
    wake(lookAtMs)
  }

  return {
    /** Lets the next pass start a round, because something may be due already. */
    lookNow(): void {
      lookAtMs = Number.NEGATIVE_INFINITY
    },
    /** Notes a time at which something is due. Only the earliest of these times counts. */
    lookAt,
    /** Forgets the times that `lookAt` noted. Call it when a round starts, because the round reports what is due next. */
    clear(): void {
      lookAtMs = Number.POSITIVE_INFINITY
    },
    /** Makes the next round wait for more attempts to end. Call it for the first attempt that ends after a round. */
    beginWait(): void {
      waitUntilMs = clock.monotonic() + WAIT_MS
    },
    /** Asks for a pass at the end of the wait. */
    wakeAfterWait: () => wake(clock.now() + Math.max(0, waitUntilMs - clock.monotonic())),
    /** Call it when the store has failed. */
    retryLater(): void {
      waitUntilMs = clock.monotonic() + RETRY_MS
      lookAt(clock.now() + RETRY_MS)
    },
    /** Delays the next round. Call it while many pushes are being recorded. `beganMs`: when the last round began, monotonic milliseconds. */
    spaceOut(beganMs: number): void {
      restUntilMs = beganMs + BUSY_ROUND_MS
    },
    /** How long until `spaceOut` allows the next round; 0 or less: it may start now. */
    restMs: () => restUntilMs - clock.monotonic(),
    isLookDue: () => clock.now() >= lookAtMs,
    isWaitOver: () => clock.monotonic() >= waitUntilMs,
    /** Asks for a pass at the next time at which something is due, if there is one. */
    wakeWhenDue(): void {
      if (lookAtMs < Number.POSITIVE_INFINITY) wake(lookAtMs)
    },
  }
}
