import type { AttemptResult, FailureReason } from '../domain/delivery.ts'
import type { DeliverySigner } from '../domain/delivery-request.ts'
import { createEndpointRates } from './endpoint-rates.ts'
import type {
  ClaimedDelivery,
  Clock,
  DeliverySender,
  EndpointNotice,
  EndpointState,
  Log,
  Meter,
  Route,
  SettledAttempt,
  WriteSide,
} from './ports.ts'

/** Knows what signs for an endpoint at a time: while its key is being replaced, both do. */
export type SignerOf = (state: EndpointState, nowMs: number) => Promise<DeliverySigner | null>

/** How an endpoint is reached. */
export type RouteOf = (state: EndpointState) => Route

export interface RelayPorts {
  readonly write: Pick<WriteSide, 'deliveryTurn'>
  readonly sender: DeliverySender
  /** Null: the endpoint's key is not to be had, so nothing can be sent to it. */
  readonly signerOf: SignerOf
  readonly routeOf: RouteOf
  readonly clock: Clock
  readonly random: () => number
  readonly meter: Pick<Meter, 'deliveryAttempted'>
  readonly log: Log
  /** Asks for another pass, at once or at a time of the wall clock. */
  readonly wake: (atMs: number | null) => void
}

export interface RelayOptions {
  /** What the ids of events begin with: this relay's own name, made once. */
  readonly relayId: string
  /** The most deliveries claimed for one endpoint at once. */
  readonly claimsMax: number
}

export interface Relay {
  /** Settles what ended, claims what is due, starts attempts and does not wait for them: each asks for the next pass when it ends. */
  pass(): Promise<'idle'>
  /** Claims nothing more; resolves when every attempt has ended and is settled. */
  stop(): Promise<void>
}

const NOTICES: Readonly<Record<EndpointNotice['kind'], string>> = {
  disabled_gone: 'an endpoint answered 410 and is disabled; everything for it waits',
  disabled_failing: 'an endpoint gave nothing but failures for 120 h and is disabled; everything for it waits',
  recovered: 'an endpoint takes events again',
}

/** How long after the store failed it is tried again. */
const REST_MS = 1000
/** How long what ended may wait to be written down together with more. */
const SETTLE_MS = 5

/**
 * Pushes events to endpoints. What is owed is in the store; here is only what is under way, so a relay that dies owes it still, and sends it
 * again under the same id when it starts (DOMAIN 7.2). An attempt counts against its endpoint's concurrency until it is written down, so that
 * no more than that can come twice.
 */
export function createRelay(ports: RelayPorts, { relayId, claimsMax }: RelayOptions): Relay {
  const { write, clock, log, wake } = ports
  const inFlight = new Map<string, number>()
  const running = new Set<Promise<void>>()
  let ended: SettledAttempt[] = []
  let endpoints = new Map<string, EndpointState>()
  /** Endpoints that more is due for than there was room. */
  let more: ReadonlySet<string> = new Set()
  const rates = createEndpointRates()
  let stopping = false

  async function turn(): Promise<readonly ClaimedDelivery[]> {
    const settled = ended
    ended = []
    for (const { endpointId } of settled) inFlight.set(endpointId, (inFlight.get(endpointId) ?? 1) - 1)
    try {
      const report = await write.deliveryTurn({
        settled,
        inFlight: Object.fromEntries(inFlight),
        allowance: rates.allowance(
          [...endpoints.values()].map(({ endpoint }) => endpoint),
          clock.monotonic(),
        ),
        claimsMax: stopping ? 0 : claimsMax,
        nowMs: clock.now(),
      })
      for (const { endpointId } of report.claimed) rates.started(endpointId)
      const waitMs = rates.waitMs()
      if (waitMs !== null) wake(clock.now() + waitMs)
      endpoints = new Map(report.endpoints.map((state) => [state.endpoint.id, state]))
      more = new Set(report.more)
      for (const { endpoint, kind } of report.notices) log.warn({ endpoint }, NOTICES[kind])
      if (report.nextAtMs !== null) wake(report.nextAtMs)
      return report.claimed
    } catch (error) {
      // What ended is not forgotten: told again, or, if the relay dies before, attempted again.
      for (const { endpointId } of settled) inFlight.set(endpointId, (inFlight.get(endpointId) ?? 0) + 1)
      ended = [...settled, ...ended]
      log.error({ err: error }, 'what became of deliveries could not be written down; it is tried again')
      wake(clock.now() + REST_MS)
      return []
    }
  }

  async function attempt(delivery: ClaimedDelivery): Promise<void> {
    const { body: _body, previousSequence: _previous, ...rest } = delivery
    const atMs = clock.now()
    const result = await send(delivery, atMs)
    ports.meter.deliveryAttempted(result.kind, result.durationMs)
    ended.push({ ...rest, result, atMs, random: ports.random() })
    wake(isTurnWorthwhile(delivery.endpointId) ? null : clock.now() + SETTLE_MS)
  }

  /** Whether an endpoint that more is due for has as many attempts free as under way: a turn costs much the same however much it does. */
  function isTurnWorthwhile(endpointId: string): boolean {
    if (!more.has(endpointId)) return false
    const free = ended.reduce((count, attempted) => count + (attempted.endpointId === endpointId ? 1 : 0), 0)
    return 2 * free >= (inFlight.get(endpointId) ?? 0)
  }

  async function send(delivery: ClaimedDelivery, nowMs: number): Promise<AttemptResult> {
    if (delivery.body === null) return unsent('body_gone', 'the bytes of the push are no longer kept')
    const state = endpoints.get(delivery.endpointId)
    const signer = state === undefined ? null : await ports.signerOf(state, nowMs)
    if (state === undefined || signer === null) return unsent('forbidden', 'the key of the endpoint is not to be had')
    const { sequence, previousSequence, body } = delivery
    const headers = signer.headers({ webhookId: `${relayId}_${sequence}`, sequence, previousSequence, body }, nowMs)
    return await ports.sender.send({ url: state.endpoint.url, headers, body, route: ports.routeOf(state) })
  }

  return {
    async pass() {
      for (const delivery of await turn()) {
        inFlight.set(delivery.endpointId, (inFlight.get(delivery.endpointId) ?? 0) + 1)
        const run: Promise<void> = attempt(delivery).finally(() => running.delete(run))
        running.add(run)
      }
      return 'idle'
    },
    async stop() {
      stopping = true
      await Promise.all(running)
      if (ended.length > 0) await turn()
    },
  }
}

function unsent(reason: FailureReason, detail: string): AttemptResult {
  return { kind: 'failed', reason, detail, durationMs: 0, answerStart: new Uint8Array() }
}
