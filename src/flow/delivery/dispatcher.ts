import type { AttemptResult } from '../../domain/delivery/delivery.ts'
import type { ClaimedDelivery, DispatchRoundReport, SettledAttempt } from '../../domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import type { Clock, Log, Meter } from '../ports.ts'
import type { WriteSide } from '../write-side.ts'
import { createEndpointLog } from './endpoint-log.ts'
import { createEndpointQueues, type EndpointQueue } from './endpoint-queues.ts'
import { createEndpointRates } from './endpoint-rates.ts'
import { createSendDelivery, type SendDeliveryOptions, type SendDeliveryPorts } from './send-delivery.ts'

export interface DispatcherPorts extends SendDeliveryPorts {
  readonly write: Pick<WriteSide, 'dispatchRound'>
  readonly clock: Clock
  readonly random: () => number
  readonly meter: Pick<Meter, 'deliveryAttempted'>
  readonly log: Log
  /** Asks for another pass, at once or at a time of the wall clock. */
  readonly wake: (atMs: number | null) => void
  /** Takes in at once what the writer has answered, if it is on a thread: it has nothing to do until it is asked for the next turn. */
  readonly hear?: () => void
  /** Resolves when what was at hand on the network has been done. */
  readonly breathe: () => Promise<void>
}

export interface DispatcherOptions extends SendDeliveryOptions {
  /** The most deliveries claimed for one endpoint at once. */
  readonly claimsMax: number
  /** Attempts at the same time to an endpoint that says nothing else. */
  readonly perEndpoint: () => number
}

export interface Dispatcher {
  /** Something may be due that was not: the next pass looks. */
  look(): void
  /** How endpoints stand, or the order of what waits for them, has changed: until a pass has heard how, nothing that waits is sent. */
  review(): void
  /** Settles what ended, claims what is due, starts attempts and does not wait for them: each asks for the next pass when it ends. */
  pass(): Promise<'idle'>
  /** From now on claims nothing and begins nothing; resolves when every attempt has ended and is settled. */
  stop(): Promise<void>
}

/** How long after the store failed it is tried again. */
const REST_MS = 1000
/** How long what ended may wait to be written down together with more. */
const SETTLE_MS = 5
/** How far turns are apart in a rush of pushes, at the least: fewer and larger ones take less of what their senders wait for. */
const RUSH_TURN_MS = 10
/** After so many what else is at hand comes first: these leave, and answers are taken in, while the rest is still to be signed. */
const SENT_AT_ONCE = 4

/**
 * Pushes events to endpoints. What is owed is in the store; here is only what is under way, so a relay that dies owes it still, and sends
 * it again under the same id when it starts (DOMAIN 7.2). More is claimed than may be attempted at the same time, so that an endpoint need
 * not wait for the store between two; it counts until it is written down, so that no more than `CLAIMS_PER_ATTEMPT` times its concurrency
 * can come twice.
 */
export function createDispatcher(ports: DispatcherPorts, { relayId, claimsMax, perEndpoint }: DispatcherOptions): Dispatcher {
  const { write, clock, log, wake } = ports
  const lanes = createEndpointQueues(perEndpoint)
  const rates = createEndpointRates()
  const endpointLog = createEndpointLog(ports)
  const send = createSendDelivery(ports, { relayId })
  let endpoints: readonly EndpointState[] = []
  let ended: SettledAttempt[] = []
  let underWay = 0
  let whenIdle = (): void => {}
  /** The next turn, when it was asked for before what the last one handed out was sent. */
  let asked: Promise<readonly ClaimedDelivery[]> | null = null
  /** When something falls due, by the wall clock. */
  let lookAtMs = Number.NEGATIVE_INFINITY
  /** Until when what ended first may wait for company, by the clock that only goes forward. */
  let settleAtMs = 0
  /** Before this no turn is asked for, by the same clock. */
  let restUntilMs = Number.NEGATIVE_INFINITY
  let stopping = false
  /** How often it was said that endpoints, or the order of what waits, are not what they were, and up to which of these a turn has told. */
  let reviews = 0
  let reviewed = 0

  async function turn(): Promise<readonly ClaimedDelivery[]> {
    const settled = ended
    const asOf = reviews
    ended = []
    lookAtMs = Number.POSITIVE_INFINITY
    const beganMs = clock.monotonic()
    lanes.settling()
    try {
      const report = await write.dispatchRound({
        settled,
        inFlight: lanes.inFlight(),
        allowance: rates.allowance(
          endpoints.map(({ endpoint }) => endpoint),
          clock.monotonic(),
        ),
        claimsMax: stopping ? 0 : claimsMax,
        nowMs: clock.now(),
      })
      lanes.settled(settled)
      if (report.isRush === true) restUntilMs = beganMs + RUSH_TURN_MS
      hearOf(report)
      reviewed = asOf
      return report.claimed
    } catch (error) {
      // What ended is not forgotten: told again, or, if the relay dies before, attempted again.
      lanes.notSettled(settled)
      ended = [...settled, ...ended]
      // What cannot be written down afterwards is better not sent.
      lanes.giveBack('all')
      settleAtMs = clock.monotonic() + REST_MS
      log.error({ err: error }, 'what became of deliveries could not be written down; it is tried again')
      lookAt(clock.now() + REST_MS)
      return []
    }
  }

  function hearOf(report: DispatchRoundReport): void {
    endpoints = report.endpoints
    lanes.learn(endpoints, report.more)
    for (const { endpointId } of report.claimed) rates.started(endpointId)
    lanes.claimed(report.claimed)
    const waitMs = rates.waitMs()
    if (waitMs !== null) lookAt(clock.now() + waitMs)
    endpointLog.follow(endpoints)
    if (report.nextAtMs !== null) lookAt(report.nextAtMs)
    // What waits for an endpoint that gets nothing now, and what is overtaken, is not this relay's to keep.
    if (lanes.giveBack('surplus') + lanes.giveBackThese(report.overtaken) > 0) lookAt(clock.now())
  }

  function look(): void {
    lookAtMs = Number.NEGATIVE_INFINITY
  }

  function lookAt(atMs: number): void {
    lookAtMs = Math.min(lookAtMs, atMs)
    wake(lookAtMs)
  }

  const restMs = () => restUntilMs - clock.monotonic()

  function isTurnDue(): boolean {
    if (clock.now() >= lookAtMs) return true
    return ended.length > 0 && (clock.monotonic() >= settleAtMs || lanes.isTurnWorthwhile())
  }

  function settleLater(): void {
    wake(clock.now() + Math.max(0, settleAtMs - clock.monotonic()))
  }

  /** Begins the next attempt if there may be one more; gives whether it did. */
  function beginNext(lane: EndpointQueue): boolean {
    if (stopping || reviewed !== reviews) return false
    const delivery = lanes.takeNext(lane)
    if (delivery !== null) attempt(delivery, lane)
    return delivery !== null
  }

  function beginAll(lane: EndpointQueue): void {
    if (lane.isBeginning) return
    lane.isBeginning = true
    try {
      while (beginNext(lane));
    } finally {
      lane.isBeginning = false
    }
  }

  function attempt(delivery: ClaimedDelivery, lane: EndpointQueue): void {
    const atMs = clock.now()
    underWay += 1
    const onAgain = () => rates.started(delivery.endpointId)
    const onEnd = (result: AttemptResult) => {
      const { deliveryId, endpointId, parcelId, sequence, plannedAtMs, attempts, spared, firstFailedAtMs } = delivery
      const isFirst = ended.length === 0
      if (isFirst) settleAtMs = clock.monotonic() + SETTLE_MS
      const attempted = { deliveryId, endpointId, parcelId, sequence, plannedAtMs, attempts, spared, firstFailedAtMs }
      ended.push({ ...attempted, result, atMs, random: ports.random() })
      lanes.ended(lane, deliveryId, result)
      underWay -= 1
      const name = lane.state?.endpoint.name ?? 'removed'
      ports.meter.deliveryAttempted(name, result.kind, result.durationMs)
      endpointLog.attempted(name, result)
      beginAll(lane)
      if (lanes.isTurnWorthwhileFor(lane)) wake(null)
      else if (isFirst) settleLater()
      ports.hear?.()
      if (underWay === 0) whenIdle()
    }
    send(delivery, lane.state, atMs, { onAgain, onEnd })
  }

  return {
    look,
    review() {
      reviews += 1
      look()
    },
    async pass() {
      if (asked === null && restMs() > 0) {
        wake(clock.now() + restMs())
        return 'idle'
      }
      if (asked === null && !isTurnDue()) {
        // Only one time is waited for: the one that is over may have stood in for a later one.
        if (lookAtMs < Number.POSITIVE_INFINITY) wake(lookAtMs)
        if (ended.length > 0) settleLater()
        return 'idle'
      }
      const claimed = await (asked ?? turn())
      asked = null
      // Before anything is sent: that takes time, in which the writer would have nothing to do.
      if (restMs() <= 0 && lanes.isTurnWorthwhile()) {
        asked = turn()
        wake(null)
      }
      let begun = 0
      for (const { endpointId } of claimed) {
        if (!beginNext(lanes.of(endpointId))) continue
        begun += 1
        if (begun % SENT_AT_ONCE === 0) await ports.breathe()
      }
      // What waited while it was not known whether it may be sent.
      for (const lane of lanes.all()) beginAll(lane)
      return 'idle'
    },
    async stop() {
      stopping = true
      await new Promise<void>((resolve) => {
        whenIdle = resolve
        if (underWay === 0) resolve()
      })
      // What it hands out is not sent any more.
      await asked
      if (ended.length > 0) await turn()
    },
  }
}
