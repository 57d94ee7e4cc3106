import { type AttemptResult, isGone, isLimit } from '../../../domain/delivery/delivery.ts'
import type { ClaimedDelivery } from '../../../domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import { waitOf } from '../../../domain/delivery/pace.ts'

export interface EndpointQueueOptions {
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
