import type { ClaimedDelivery } from '../../../domain/delivery/dispatch-round.ts'
import type { Part, Relay, Writes } from '../../relay-part.ts'
import { createDispatchRounds, createRoundTimes, type DispatchRounds, type HeldEndpoints, type RoundTimes } from './dispatch-rounds.ts'
import { createEndpointQueues, createEndpointRates, type EndpointQueue, type EndpointQueues } from './endpoint-queues.ts'
import {
  createDeliveryAttempts,
  createEndpointLog,
  createSendDelivery,
  type DeliveryAttempts,
  type SendDeliveryOptions,
  type SendDeliveryPorts,
} from './send-delivery.ts'

export interface DispatcherPorts
  extends SendDeliveryPorts,
    Pick<Relay, 'clock' | 'log'>,
    Part<'meter', 'deliveryAttempted'>,
    Writes<'dispatchRound'> {
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number
  readonly held: HeldEndpoints
  /** Asks for another pass: at once (null), or at a wall-clock time, epoch milliseconds. */
  readonly wake: (atMs: number | null) => void
  /** Handles the replies of the writer's thread now rather than later, because the writer is idle until the next round is requested. */
  readonly threads?: { readonly drainReplies: () => void } | null
  /** Resolves when pending network events have been handled. */
  readonly yieldToIo: () => Promise<void>
}

export interface DispatcherOptions extends SendDeliveryOptions {
  /** One round claims at most this many deliveries for one endpoint. */
  readonly claimsMax: number
  /** How many attempts may run at once to an endpoint whose settings give no limit. */
  readonly perEndpoint: () => number
  /** How many deliveries may be claimed for each concurrent attempt. */
  readonly claimsPerAttempt: number
}

export type Dispatcher = ReturnType<typeof createDispatcher>

/** Network events are handled each time this many attempts have started. So their requests leave before further requests are signed. */
const SENT_AT_ONCE = 4

/**
 * Delivers events to endpoints. Deliveries are queued in the store, and only claims are in memory. So a relay that restarts after a crash
 * claims its unsettled deliveries once more, and sends them under the same ids (DOMAIN 7.2).
 *
 * The relay claims more than it may attempt at once, so that an endpoint need not wait for the store between two attempts. A claim lasts
 * until the result of its attempt is stored. So after a crash, up to `claimsPerAttempt` deliveries for each concurrent attempt may come twice.
 */
export function createDispatcher(ports: DispatcherPorts, { relayId, claimsMax, ...limits }: DispatcherOptions) {
  /** A round that was started in advance, before the claims of the last round were sent; null: no round was. */
  let asked: Promise<readonly ClaimedDelivery[]> | null = null
  let isStopping = false
  const endpointLog = createEndpointLog(ports)
  const rates = createEndpointRates(ports.clock)
  const queues = createEndpointQueues({ ...limits, delivers: ports.held.delivers, now: ports.clock.now })
  const times = createRoundTimes(ports)
  const rounds = createDispatchRounds({ ...ports, queues, rates, endpointLog, times })
  const requestRound = (isFirst: boolean, queue: EndpointQueue) => {
    if (queue.isRoundWorthwhile) ports.wake(null)
    else if (isFirst) times.wakeAfterWait()
    ports.threads?.drainReplies()
  }
  const attempts = createDeliveryAttempts({
    ...ports,
    send: createSendDelivery(ports, { relayId }),
    rates,
    endpointLog,
    mayBegin: (endpointId) => !isStopping && rounds.isReviewed() && ports.held.delivers(endpointId),
    areEndpointsKnown: rounds.areEndpointsKnown,
    onReleased() {
      times.lookNow()
      ports.wake(null)
    },
    term: ports.held.term,
    onEnded(attempt) {
      const isFirst = rounds.add(attempt)
      return (queue) => requestRound(isFirst, queue)
    },
  })
  const ask = () => rounds.run(isStopping ? 0 : claimsMax)
  /** Call it when the order of waiting deliveries may have changed. Then nothing is sent until a round has reported the new order. */
  const review = () => {
    rounds.review('order')
    times.lookNow()
  }
  return {
    /** Call it when something may have become due. The next pass runs a round. */
    look: times.lookNow,
    review,
    /** Does the same as `review`. Resolves at the end of a round that began after this call. */
    reviewed() {
      review()
      return rounds.whenReviewed()
    },
    /**
     * Call it when the endpoints have changed. Does the same as `review`. Also, attempts that are still connecting send nothing until the round
     * has reported (DOMAIN 7.4).
     */
    reviewEndpoints() {
      rounds.review('endpoints')
      times.lookNow()
    },
    /** Settles ended attempts, claims due deliveries and starts attempts. Does not wait for their ends: each end asks for another pass. */
    async pass(): Promise<'idle'> {
      if (asked === null && !isRoundDue(rounds, times, ports)) return 'idle'
      const claimed = await (asked ?? ask())
      asked = null
      if (times.isLookDue()) ports.wake(null)
      // Start the next round before the claims are sent, so that the writer is not idle while they are sent.
      if (times.restMs() <= 0 && queues.isRoundWorthwhile()) {
        asked = ask()
        ports.wake(null)
      }
      await sendAll(claimed, queues, attempts, ports.yieldToIo)
      return 'idle'
    },
    /** Call it for an endpoint that this replica no longer holds. Resolves when its attempts have ended and their results are stored. */
    drained(endpointId: string) {
      times.lookNow()
      return rounds.drained(endpointId)
    },
    /** Forgets claims that were not attempted yet. Call it when this replica has lost its endpoints. */
    lapsed: queues.releaseAll,
    /** Since when the store has failed to take results or to give the next deliveries, so that events wait; null: it works. */
    unwritten: rounds.unwritten,
    /** Claims and starts nothing from now on. Resolves when every attempt has ended and is settled. */
    async stop() {
      isStopping = true
      await attempts.ended()
      // A round that was started in advance must end too. The claims that it reports are not sent.
      await asked
      if (rounds.hasEnded() || rounds.isAwaited()) await ask()
    },
  }
}

/** Whether a round is due. If not, asks for a pass at the time at which a round will be due. */
function isRoundDue(rounds: DispatchRounds, times: RoundTimes, { wake, clock }: Pick<DispatcherPorts, 'wake' | 'clock'>): boolean {
  const restMs = times.restMs()
  if (restMs > 0) {
    wake(clock.now() + restMs)
    return false
  }
  if (rounds.isDue()) return true
  // The timer keeps only the earliest time, so a later time must be set again.
  times.wakeWhenDue()
  if (rounds.hasEnded()) times.wakeAfterWait()
  return false
}

async function sendAll(
  claimed: readonly ClaimedDelivery[],
  queues: EndpointQueues,
  attempts: DeliveryAttempts,
  yieldToIo: () => Promise<void>,
): Promise<void> {
  let begun = 0
  for (const { endpointId } of claimed) {
    if (!attempts.beginNext(queues.of(endpointId))) continue
    begun += 1
    if (begun % SENT_AT_ONCE === 0) await yieldToIo()
  }
  // Claims of earlier rounds may wait, too, because after a change nothing was sent until this round had reported.
  for (const queue of queues.all()) attempts.beginAll(queue)
}
