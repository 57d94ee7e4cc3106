import type { ClaimedDelivery } from '../../domain/delivery/dispatch-round.ts'
import type { Clock, Log, Meter } from '../ports.ts'
import type { WriteSide } from '../write-side.ts'
import { createDeliveryAttempts, type DeliveryAttempts } from './delivery-attempts.ts'
import { createDispatchRounds, type DispatchRounds } from './dispatch-rounds.ts'
import { createEndpointLog } from './endpoint-log.ts'
import { createEndpointQueues, type EndpointQueue, type EndpointQueues } from './endpoint-queues.ts'
import { createEndpointRates } from './endpoint-rates.ts'
import { createRoundTimes, type RoundTimes } from './round-times.ts'
import { createSendDelivery, type SendDeliveryOptions, type SendDeliveryPorts } from './send-delivery.ts'

export interface DispatcherPorts extends SendDeliveryPorts {
  readonly write: Pick<WriteSide, 'dispatchRound'>
  readonly clock: Clock
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number
  readonly meter: Pick<Meter, 'deliveryAttempted'>
  readonly log: Log
  /** Asks for another pass, at once (null) or at a time of the wall clock, epoch milliseconds. */
  readonly wake: (atMs: number | null) => void
  /** Takes in the writer's answer at once if it is on a thread: the writer idles until it is asked for the next round. */
  readonly drainReplies?: () => void
  /** Resolves when pending network events have been handled. */
  readonly yieldToIo: () => Promise<void>
}

export interface DispatcherOptions extends SendDeliveryOptions {
  /** The most deliveries claimed for one endpoint at once. */
  readonly claimsMax: number
  /** Concurrent attempts to an endpoint that sets no limit of its own. */
  readonly perEndpoint: () => number
}

export interface Dispatcher {
  /** Something may be due that was not: the next pass asks the writer. */
  look(): void
  /** Endpoints, or the order of what waits for them, have changed: nothing that waits is sent until the writer has reported. */
  review(): void
  /** Settles what ended, claims what is due, starts attempts and does not wait for them: each asks for the next pass when it ends. */
  pass(): Promise<'idle'>
  /** Claims and begins nothing from now on; resolves when every attempt has ended and is settled. */
  stop(): Promise<void>
}

/** After so many attempts are begun, pending network events are handled: these leave while the rest is still to be signed. */
const SENT_AT_ONCE = 4

/** What a dispatcher is doing. */
interface Dispatch {
  /** The next round, if it was asked for before the last one's claims were sent. */
  asked: Promise<readonly ClaimedDelivery[]> | null
  stopping: boolean
}

interface DispatchParts {
  readonly queues: EndpointQueues
  readonly times: RoundTimes
  readonly rounds: DispatchRounds
  readonly attempts: DeliveryAttempts
}

/**
 * Pushes events to endpoints. What is owed is in the store; only what is under way is here, so a relay that dies still owes it and sends it
 * again under the same id when it starts (DOMAIN 7.2). It claims more than it may attempt at once, so that an endpoint need not wait for the
 * store between two attempts. A claim counts until it is written down, so no more than `CLAIMS_PER_ATTEMPT` times an endpoint's concurrency
 * can arrive twice.
 */
export function createDispatcher(ports: DispatcherPorts, { relayId, claimsMax, perEndpoint }: DispatcherOptions): Dispatcher {
  const dispatch: Dispatch = { asked: null, stopping: false }
  const endpointLog = createEndpointLog(ports)
  const rates = createEndpointRates()
  const queues = createEndpointQueues(perEndpoint)
  const times = createRoundTimes(ports)
  const rounds = createDispatchRounds({ ...ports, queues, rates, endpointLog, times })
  const goOn = (isFirst: boolean, queue: EndpointQueue) => {
    if (queues.isRoundWorthwhileFor(queue)) ports.wake(null)
    else if (isFirst) times.wakeAfterWait()
    ports.drainReplies?.()
  }
  const attempts = createDeliveryAttempts({
    ...ports,
    send: createSendDelivery(ports, { relayId }),
    queues,
    rates,
    endpointLog,
    mayBegin: () => !dispatch.stopping && rounds.isReviewed(),
    onEnded(attempt) {
      const isFirst = rounds.add(attempt)
      return (queue) => goOn(isFirst, queue)
    },
  })
  const ask = () => rounds.run(dispatch.stopping ? 0 : claimsMax)
  return {
    look: times.lookNow,
    review() {
      rounds.review()
      times.lookNow()
    },
    async pass() {
      if (dispatch.asked === null && !isRoundDue({ rounds, times }, ports)) return 'idle'
      const claimed = await (dispatch.asked ?? ask())
      dispatch.asked = null
      // Before anything is sent: otherwise the writer would idle meanwhile.
      if (times.restMs() <= 0 && queues.isRoundWorthwhile()) {
        dispatch.asked = ask()
        ports.wake(null)
      }
      await sendAll(claimed, { queues, attempts }, ports.yieldToIo)
      return 'idle'
    },
    async stop() {
      dispatch.stopping = true
      await attempts.ended()
      // Its claims are not sent any more.
      await dispatch.asked
      if (rounds.hasEnded()) await ask()
    },
  }
}

/** If not, asks for a pass when it may be. */
function isRoundDue({ rounds, times }: Pick<DispatchParts, 'rounds' | 'times'>, { wake, clock }: DispatcherPorts): boolean {
  const restMs = times.restMs()
  if (restMs > 0) {
    wake(clock.now() + restMs)
    return false
  }
  if (rounds.isDue()) return true
  // Only the earliest time is waited for: the one that has passed may have stood before a later one.
  times.wakeWhenDue()
  if (rounds.hasEnded()) times.wakeAfterWait()
  return false
}

async function sendAll(
  claimed: readonly ClaimedDelivery[],
  { queues, attempts }: Pick<DispatchParts, 'queues' | 'attempts'>,
  yieldToIo: () => Promise<void>,
): Promise<void> {
  let begun = 0
  for (const { endpointId } of claimed) {
    if (!attempts.beginNext(queues.of(endpointId))) continue
    begun += 1
    if (begun % SENT_AT_ONCE === 0) await yieldToIo()
  }
  // These waited while it was not known whether they may be sent.
  for (const queue of queues.all()) attempts.beginAll(queue)
}
