import { type AttemptResult, isGone, isLimit } from '../../../domain/delivery/delivery.ts'
import type { ClaimedDelivery, ClaimRef, DispatchRound, SettledAttempt } from '../../../domain/delivery/dispatch-round.ts'
import { paceAt, waitOf } from '../../../domain/delivery/endpoint-health.ts'
import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import type { Clock } from '../../ports.ts'

interface EndpointQueueOptions {
  /** How many attempts may run at once to an endpoint whose settings give no limit. */
  readonly perEndpoint: () => number
  /** How many deliveries may be claimed for each concurrent attempt. */
  readonly claimsPerAttempt: number
  readonly delivers: (endpointId: string) => boolean
  readonly now: () => number
}

/** The claims of one endpoint. A claim is here from the round that makes it to the round that stores its result. */
export class EndpointQueue {
  readonly endpointId: string
  readonly #options: EndpointQueueOptions
  #state: EndpointState | null = null
  /** Claims that were not attempted yet. When an attempt ends, the next claim is attempted at once, without waiting for a round. */
  readonly #waiting: ClaimedDelivery[] = []
  /** The ids of all claims that wait or are being attempted. */
  readonly #held = new Set<number>()
  /** Claims that were not waiting when the last round reported them as overtaken. They must not be sent again. */
  readonly #overtaken = new Set<number>()
  /** The number of ended attempts whose results are not being stored yet. */
  #ended = 0
  /** The number of answers that stop the sending and are not stored yet: 410, and what limits us. While there is one, nothing is sent. */
  #stops = 0
  #isMoreDue = false
  #isBeginning = false

  constructor(endpointId: string, options: EndpointQueueOptions) {
    this.endpointId = endpointId
    this.#options = options
  }

  /** The state of the endpoint; null: it was removed, or is not known yet. */
  get state(): EndpointState | null {
    return this.#state
  }

  /** The state of the endpoint if something may be sent to it; null: nothing may be sent, or the state is not known yet. */
  get openState(): EndpointState | null {
    return this.#isStopped || this.#isClosed ? null : this.#state
  }

  get hasWaiting(): boolean {
    return this.#waiting.length > 0
  }

  get isIdle(): boolean {
    return this.#open === 0
  }

  get inFlight(): readonly number[] {
    return [...this.#held]
  }

  /** Whether a round is worth its fixed cost: more deliveries are due, and `#ended` has reached `#open` or `#attemptsMax`. */
  get isRoundWorthwhile(): boolean {
    return this.#isMoreDue && this.#ended > 0 && this.#ended >= Math.min(this.#open, this.#attemptsMax)
  }

  update(state: EndpointState | null): void {
    this.#state = state
  }

  setMoreDue(isMoreDue: boolean): void {
    this.#isMoreDue = isMoreDue
  }

  claimed(delivery: ClaimedDelivery): void {
    this.#held.add(delivery.deliveryId)
    this.#waiting.push(delivery)
  }

  /** Null: no claim waits, or the endpoint has no room for an attempt. */
  takeNext(): ClaimedDelivery | null {
    const hasRoom = !this.#isStopped && this.#held.size - this.#waiting.length < this.#attemptsMax
    return hasRoom ? (this.#waiting.shift() ?? null) : null
  }

  /** Calls `begin` until it returns false. An attempt that ends at once calls this from within `begin`; that inner call does nothing. */
  beginWhile(begin: (queue: EndpointQueue) => boolean): void {
    if (this.#isBeginning) return
    this.#isBeginning = true
    try {
      while (begin(this));
    } finally {
      this.#isBeginning = false
    }
  }

  releaseAll(): number {
    return this.#forget(this.#waiting.splice(0))
  }

  /** Releases the last waiting claims above the endpoint's limit, or all if nothing may be sent to the endpoint. Returns how many. */
  releaseSurplus(): number {
    const { delivers, claimsPerAttempt } = this.#options
    if (!delivers(this.endpointId) || this.#isClosed || this.#isStopped) return this.releaseAll()
    const surplus = Math.max(0, this.#open - (this.#isProbed ? 1 : claimsPerAttempt * this.#attemptsMax))
    return this.#forget(this.#waiting.splice(Math.max(0, this.#waiting.length - surplus)))
  }

  /** Notes which claims must not be attempted any more, and releases the waiting ones among them. Returns how many. */
  releaseOvertaken(deliveryIds: readonly number[]): number {
    this.#overtaken.clear()
    let released = 0
    for (const deliveryId of deliveryIds) {
      const at = this.#waiting.findIndex((delivery) => delivery.deliveryId === deliveryId)
      if (at === -1) this.#overtaken.add(deliveryId)
      else released += this.#forget(this.#waiting.splice(at, 1))
    }
    return released
  }

  /**
   * Puts an unsent delivery back, in front of all waiting ones, and returns true. If the delivery was overtaken, or the endpoint is disabled
   * or not known, releases the delivery and returns false.
   */
  putBack(delivery: ClaimedDelivery): boolean {
    const isKept = !this.#isClosed && !this.#overtaken.has(delivery.deliveryId)
    if (isKept) this.#waiting.unshift(delivery)
    else this.#held.delete(delivery.deliveryId)
    return isKept
  }

  /** Removes a claim whose attempt has ended without a result. */
  dropped(deliveryId: number): void {
    this.#held.delete(deliveryId)
  }

  ended(deliveryId: number, result: AttemptResult): void {
    this.#held.delete(deliveryId)
    this.#ended += 1
    if (stopsSending(result)) this.#stops += 1
  }

  /** Notes that the results of all ended attempts are being stored. */
  settling(): void {
    this.#ended = 0
  }

  settled(result: AttemptResult): void {
    if (stopsSending(result)) this.#stops -= 1
  }

  notSettled(): void {
    this.#ended += 1
  }

  get #isProbed(): boolean {
    return this.#state !== null && this.#state.health.probing !== null
  }

  get #isStopped(): boolean {
    return this.#stops > 0 || (this.#state !== null && waitOf(this.#state.health.pace, this.#options.now()) !== null)
  }

  get #isClosed(): boolean {
    return this.#state === null || this.#state.disabled !== null
  }

  get #attemptsMax(): number {
    return this.#isProbed ? 1 : (this.#state?.endpoint.concurrency ?? this.#options.perEndpoint())
  }

  /** The number of claims, plus the number of ended attempts whose results are not being stored yet. */
  get #open(): number {
    return this.#held.size + this.#ended
  }

  #forget(deliveries: readonly ClaimedDelivery[]): number {
    for (const { deliveryId } of deliveries) this.#held.delete(deliveryId)
    return deliveries.length
  }
}

function stopsSending(result: AttemptResult): boolean {
  return isGone(result) || isLimit(result)
}

/** The claims of all endpoints. */
export type EndpointQueues = ReturnType<typeof createEndpointQueues>

export function createEndpointQueues(options: EndpointQueueOptions) {
  const queues = new Map<string, EndpointQueue>()
  let known: readonly EndpointState[] = []

  function of(endpointId: string): EndpointQueue {
    const found = queues.get(endpointId)
    if (found !== undefined) return found
    const queue = new EndpointQueue(endpointId, options)
    queues.set(endpointId, queue)
    return queue
  }

  function updateStates(states: readonly EndpointState[]): void {
    const ids = new Set(states.map(({ endpoint }) => endpoint.id))
    for (const [id, queue] of queues) {
      if (ids.has(id)) continue
      queue.update(null)
      if (queue.isIdle) queues.delete(id)
    }
    for (const state of states) of(state.endpoint.id).update(state)
  }

  function release(from: (queue: EndpointQueue) => number): number {
    let count = 0
    for (const queue of queues.values()) count += from(queue)
    return count
  }

  return {
    of,
    all: (): Iterable<EndpointQueue> => queues.values(),
    /** For `more`, see `DispatchRoundReport`. */
    update(states: readonly EndpointState[], more: readonly string[]): void {
      if (states !== known) updateStates(states)
      known = states
      for (const [id, queue] of queues) queue.setMoreDue(more.includes(id))
    },
    claimed(deliveries: readonly ClaimedDelivery[]): void {
      for (const delivery of deliveries) of(delivery.endpointId).claimed(delivery)
    },
    releaseAll(): void {
      release((queue) => queue.releaseAll())
    },
    /** Releases the waiting claims above an endpoint's limit. If nothing may be sent to it now, releases all of them. Returns the number released. */
    releaseSurplus: () => release((queue) => queue.releaseSurplus()),
    /** Notes which claims must not be attempted any more, and releases those that still wait. Returns the number released. */
    releaseOvertaken(overtaken: readonly ClaimRef[]): number {
      const byEndpoint = Map.groupBy(overtaken, ({ endpointId }) => endpointId)
      return release((queue) => queue.releaseOvertaken(byEndpoint.get(queue.endpointId)?.map(({ deliveryId }) => deliveryId) ?? []))
    },
    isIdle: (endpointId: string) => queues.get(endpointId)?.isIdle !== false,
    /** Notes that the results of all ended attempts are being stored. */
    settling(): void {
      for (const queue of queues.values()) queue.settling()
    },
    settled(attempts: readonly SettledAttempt[]): void {
      for (const { endpointId, result } of attempts) of(endpointId).settled(result)
    },
    /** Notes that these results could not be stored. The round has failed, so it is unknown whether more deliveries are due. */
    notSettled(attempts: readonly SettledAttempt[]): void {
      for (const queue of queues.values()) queue.setMoreDue(false)
      for (const { endpointId } of attempts) of(endpointId).notSettled()
    },
    inFlight: (): DispatchRound['inFlight'] => Object.fromEntries([...queues].map(([id, queue]) => [id, queue.inFlight])),
    isRoundWorthwhile(): boolean {
      for (const queue of queues.values()) if (queue.isRoundWorthwhile) return true
      return false
    },
  }
}

/** Keeps each endpoint within its rate and its pace. Each attempt takes a token from a bucket, which fills at the rate and holds one second's tokens. */
export type EndpointRates = ReturnType<typeof createEndpointRates>

interface Bucket {
  readonly ratePerSecond: number
  tokens: number
  filledAtMs: number
}

export function createEndpointRates(clock: Clock) {
  const buckets = new Map<string, Bucket>()

  function filled(id: string, ratePerSecond: number): Bucket {
    const nowMs = clock.monotonic()
    const known = buckets.get(id)
    const capacity = Math.max(1, ratePerSecond)
    const tokens = known === undefined ? capacity : Math.min(capacity, known.tokens + ((nowMs - known.filledAtMs) / 1000) * ratePerSecond)
    return { ratePerSecond, tokens, filledAtMs: nowMs }
  }

  return {
    /** How many attempts may start now, by endpoint id. Endpoints without a rate or a pace are left out. */
    allowance(states: readonly EndpointState[]): Readonly<Record<string, number>> {
      const nowMs = clock.now()
      const current = states.flatMap((state) => {
        const ratePerSecond = rateOf(state, nowMs)
        return ratePerSecond === null ? [] : [[state.endpoint.id, filled(state.endpoint.id, ratePerSecond)] as const]
      })
      // Drop the bucket of an endpoint whose rate was removed. Attempts without a rate would empty it far below zero, and if a rate is set
      // again, nothing could be sent until the bucket has filled.
      buckets.clear()
      for (const [id, bucket] of current) buckets.set(id, bucket)
      return Object.fromEntries(current.map(([id, { tokens }]) => [id, Math.floor(tokens)]))
    },
    started(endpointId: string): void {
      const bucket = buckets.get(endpointId)
      if (bucket !== undefined) bucket.tokens -= 1
    },
    /** The milliseconds until the first exhausted bucket has a token again; null: no bucket is exhausted. */
    waitMs(): number | null {
      const waits = [...buckets.values()]
        .filter(({ tokens }) => tokens < 1)
        .map(({ tokens, ratePerSecond }) => ((1 - tokens) / ratePerSecond) * 1000)
      return waits.length === 0 ? null : Math.ceil(Math.min(...waits))
    },
  }
}

/** The setting caps the pace. Null: the endpoint has neither. */
function rateOf({ endpoint: { ratePerSecond }, health }: EndpointState, nowMs: number): number | null {
  const pace = paceAt(health.pace, nowMs)
  return ratePerSecond === null || pace === null ? (ratePerSecond ?? pace) : Math.min(ratePerSecond, pace)
}
