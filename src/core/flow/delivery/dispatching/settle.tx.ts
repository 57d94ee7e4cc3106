import { spanStart, type TallyAddition } from '../../../domain/admin/tally.ts'
import {
  type AttemptResult,
  countAttempt,
  endsByRefusal,
  type Settlement,
  settle,
  slowsEndpoint,
} from '../../../domain/delivery/delivery.ts'
import {
  type ClaimRef,
  type DeliveryRules,
  type DispatchRound,
  type DispatchRoundReport,
  groupFailures,
  type Settled,
  type SettledAttempt,
} from '../../../domain/delivery/dispatch-round.ts'
import {
  addFailingTime,
  alarmAfter,
  type EndpointHealth,
  healthAfter,
  healthAt,
  isProbeDue,
  shouldProbe,
  startProbing,
  waitOf,
} from '../../../domain/delivery/endpoint-health.ts'
import { keysAfterUse } from '../../../domain/delivery/endpoint-keys.ts'
import { type EndpointNotice, type EndpointState, withDisabled } from '../../../domain/delivery/endpoint-state.ts'
import { type OperatorEvent, tellFailure, WAITED_COUNTED_MAX } from '../../../domain/delivery/operator-event.ts'
import { addTallies } from '../../../store/admin/tally-rows.ts'
import { findGone } from '../../../store/delivery/deliveries.ts'
import { countWaiting } from '../../../store/delivery/endpoint-backlogs.ts'
import { noteFailures } from '../../../store/delivery/endpoints.ts'
import { waitsForOthers } from '../../../store/delivery/next-deliveries.ts'
import type { Session } from '../../../store/engine.ts'
import type { Transactions, WriteTx } from '../../../store/write-store.ts'
import { recordOperatorEvent } from '../../audit.tx.ts'
import type { Clock } from '../../ports.ts'
import { claimDeliveries } from './claim-deliveries.tx.ts'

/** The verbs that settle attempts and claim the next deliveries (DOMAIN 7). */
export function createDispatchRound(store: Transactions, rules: DeliveryRules, clock: Pick<Clock, 'monotonic'>) {
  const watch = createAttemptWatch(clock.monotonic)
  let options = rules
  return {
    /** Changes how deliveries are settled and claimed, from the next round on. */
    async adjustDelivery(next: DeliveryRules) {
      options = next
    },
    /** Settles attempts and claims the next deliveries, in one transaction. */
    async dispatchRound(request: DispatchRound): Promise<DispatchRoundReport> {
      const look = watch.look(request)
      const report = await store.transaction(
        async (tx) => {
          const [listed, skipped] = await Promise.all([tx.listEndpoints(), tx.findSkipped(deliveredTo(request))])
          const known = { before: watch.withOwnPaces(listed, request.nowMs), marked: skipped }
          const { states, notices } = await settleAll(tx, request, { ...known, look }, options)
          return { endpoints: states, notices, ...(await claimDeliveries(tx, { states, request }, options)) }
        },
        { ofRole: 'any' },
      )
      look.keep(report.endpoints)
      return report
    },
  }
}

/** What was read before a round settles. `marked`: the skipped deliveries. */
interface SettleLook {
  readonly before: readonly EndpointState[]
  readonly marked: readonly ClaimRef[]
  readonly look: AttemptLook
}

async function settleAll(
  tx: WriteTx,
  request: DispatchRound,
  { before, marked, look }: SettleLook,
  options: DeliveryRules,
): Promise<{ readonly states: readonly EndpointState[]; readonly notices: readonly EndpointNotice[] }> {
  const states = [...before]
  const indexes = new Map(before.map(({ endpoint }, index) => [endpoint.id, index]))
  const settled: Settled[] = []
  const notices: EndpointNotice[] = []
  for (const attempt of request.settled) {
    const index = indexes.get(attempt.endpointId)
    const state = index === undefined ? undefined : states[index]
    // The endpoint was removed during the attempt. So the delivery is cancelled, even if it was accepted.
    if (index === undefined || state === undefined) continue
    const seen = seenFailing(state, attempt, look)
    const one = settleOne(seen, attempt, request.nowMs, options)
    const health = alarmAfter(await healthOf(tx, seen, attempt, { look, nowMs: request.nowMs }), options.failingAfterMs, request.nowMs)
    const after = stateAfter(seen, one, health, request.nowMs)
    settled.push({ ...one, round: health.round })
    states[index] = after
    if (after !== state) notices.push(...noticesOf(state, after, attempt.result))
  }
  for (const [index, state] of states.entries()) {
    const health = healthAt(state.health, request.nowMs)
    if (health !== state.health && state.disabled === null) states[index] = { ...state, health }
  }
  const told = await operatorEvents(tx, { notices, states, nowMs: request.nowMs })
  // Leave out the deliveries of removed endpoints, because they are cancelled instead.
  const skipped = marked.filter((one) => indexes.has(one.endpointId) && !isUnderWay(one, request))
  tx.saveSettlements(settled, skipped, request.nowMs)
  noteFailures(tx, groupFailures(await stillStanding(tx, settled)), request.nowMs)
  addTallies(tx, tallyGivenUp([...settled.filter(({ settlement }) => settlement.state === 'dead'), ...skipped], request.nowMs))
  for (const [index, state] of states.entries()) {
    const known = before[index]
    if (known?.disabled !== state.disabled || known.keys !== state.keys) await tx.saveEndpoint(state)
    else if (known.health !== state.health) tx.saveHealth(state.endpoint.id, state.health)
  }
  for (const event of told) await recordOperatorEvent(tx, event, request.nowMs)
  return { states, notices }
}

/** Leaves out attempts whose deliveries were erased meanwhile, because the endpoint's answer may name the erased parcel. */
async function stillStanding(tx: Session, settled: readonly Settled[]): Promise<readonly Settled[]> {
  const telling = settled.filter(({ result }) => result.kind !== 'accepted' && result.answerStart.byteLength > 0)
  const gone = new Set(
    await findGone(
      tx,
      telling.map(({ deliveryId }) => deliveryId),
    ),
  )
  return gone.size === 0 ? settled : settled.filter(({ deliveryId }) => !gone.has(deliveryId))
}

function tallyGivenUp(ended: readonly Pick<ClaimRef, 'endpointId'>[], nowMs: number): readonly TallyAddition[] {
  const fromMs = spanStart('hour', nowMs)
  return [...Map.groupBy(ended, ({ endpointId }) => endpointId)].map(([id, ofEndpoint]) => ({
    fromMs,
    kind: `endpoint:${id}`,
    counts: { 'given up': ofEndpoint.length },
  }))
}

/** Returns the endpoints to which this replica delivers, including the ones that it is giving up; null: all. */
function deliveredTo({ held, settled }: DispatchRound): readonly string[] | null {
  return held === undefined ? null : [...new Set([...held, ...settled.map(({ endpointId }) => endpointId)])]
}

function isUnderWay({ deliveryId, endpointId }: ClaimRef, { inFlight }: DispatchRound): boolean {
  return inFlight[endpointId]?.includes(deliveryId) === true
}

function seenFailing(state: EndpointState, { endpointId, result }: SettledAttempt, look: AttemptLook): EndpointState {
  if (result.kind === 'accepted') return state
  const health = addFailingTime(state.health, result, look.failedAfterMs(endpointId))
  return health === state.health ? state : { ...state, health }
}

/** A probe, an attempt before its planned time, and one whose answer slows the endpoint down use up no step of the retry schedule. */
function settleOne(state: EndpointState, attempt: SettledAttempt, nowMs: number, options: DeliveryRules): Omit<Settled, 'round'> {
  const { result, random, plannedAtMs, atMs } = attempt
  const { probing } = state.health
  const isSpared = slowsEndpoint(attempt, result, state.health) || plannedAtMs > atMs || (probing !== null && isProbeDue(probing, atMs))
  const counted = countAttempt(attempt, result, nowMs, isSpared)
  const { scheduleMs, refusals } = state.endpoint
  const policy = scheduleMs === null ? options.policy : { ...options.policy, scheduleMs }
  const planned = settle(counted, result, nowMs, policy, state.health, random, isSpared ? plannedAtMs : null)
  const isRefused = planned.state === 'retrying' && endsByRefusal({ refusals, isFailing: probing !== null }, result)
  const settlement: Settlement = isRefused ? { state: 'dead', reason: 'receiver_refused' } : planned
  return { ...attempt, ...counted, settlement }
}

async function healthOf(
  tx: Session,
  state: EndpointState,
  attempt: SettledAttempt,
  { look, nowMs }: Pick<SettleLook, 'look'> & { readonly nowMs: number },
): Promise<EndpointHealth> {
  const { endpointId, parcelId, result: outcome, atMs } = attempt
  const { ratePerSecond } = state.endpoint
  const limit = slowsEndpoint(attempt, outcome, state.health)
    ? { atMs, retryAfterMs: outcome.retryAfterMs, sentPerSecond: look.sentPerSecond(endpointId), ratePerSecond }
    : null
  const health = healthAfter(state.health, { parcelId, outcome, atMs, limit }, nowMs)
  const verdict = shouldProbe(health)
  if (verdict === 'no' || (verdict === 'ask' && (await waitsForOthers(tx, state.endpoint.id, health.failedParcels)))) return health
  return startProbing(health, outcome, nowMs)
}

function stateAfter(
  state: EndpointState,
  { result, settlement }: Omit<Settled, 'round'>,
  health: EndpointHealth,
  nowMs: number,
): EndpointState {
  const disabled = settlement.state === 'held' ? (state.disabled ?? settlement.reason) : state.disabled
  const used = result.kind === 'accepted' ? result.byNextKey : undefined
  const keys = state.keys === null || used === undefined ? state.keys : keysAfterUse(state.keys, used)
  if (health === state.health && disabled === state.disabled && keys === state.keys) return state
  return withDisabled({ ...state, health, keys }, disabled, { atMs: nowMs, by: null })
}

function noticesOf(before: EndpointState, after: EndpointState, result: AttemptResult): readonly EndpointNotice[] {
  const kind = noticeOf(before, after)
  if (kind === null) return []
  const { id: endpointId, name: endpoint } = after.endpoint
  return [
    { endpoint, endpointId, kind, sinceMs: after.health.failingSinceMs ?? before.health.failingSinceMs, failure: tellFailure(result) },
  ]
}

function noticeOf(before: EndpointState, after: EndpointState): EndpointNotice['kind'] | null {
  if (before.disabled === null && after.disabled === 'gone') return 'disabled_gone'
  if (before.disabled === null && after.disabled === 'failing') return 'disabled_failing'
  if (before.health.alarmedAtMs !== null && after.health.failingSinceMs === null) return 'recovered'
  return before.health.alarmedAtMs === null && after.health.alarmedAtMs !== null ? 'failing' : null
}

interface Notices {
  readonly notices: readonly EndpointNotice[]
  readonly states: readonly EndpointState[]
  readonly nowMs: number
}

/** Must run before the attempts are saved, because it counts the deliveries that waited until this round. */
async function operatorEvents(tx: Session, { notices, states, nowMs }: Notices): Promise<readonly OperatorEvent[]> {
  // Trouble of the endpoint for operator events is only logged, because an event about it could not arrive there.
  const isOperator = ({ endpointId }: EndpointNotice) =>
    states.some(({ endpoint, origin }) => endpoint.id === endpointId && origin === 'operator')
  return await Promise.all(
    notices
      .filter((notice) => !isOperator(notice))
      .map(async (notice) => {
        const waited = notice.kind === 'recovered' ? await countWaiting(tx, notice.endpointId, WAITED_COUNTED_MAX) : 0
        return operatorEvent(notice, waited, nowMs)
      }),
  )
}

function operatorEvent(notice: EndpointNotice, waited: number, nowMs: number): OperatorEvent {
  const endpoint = { id: notice.endpointId, name: notice.endpoint }
  if (notice.kind === 'disabled_gone' || notice.kind === 'disabled_failing')
    return { event: 'endpoint_disabled', endpoint, because: notice.kind === 'disabled_gone' ? 'gone' : 'failing' }
  const sinceMs = notice.sinceMs ?? nowMs
  const since = new Date(sinceMs).toISOString()
  return notice.kind === 'failing'
    ? { event: 'endpoint_failing', endpoint, since, failure: notice.failure }
    : { event: 'endpoint_recovered', endpoint, since, downForMs: Math.max(0, nowMs - sinceMs), waited }
}

type AttemptWatch = ReturnType<typeof createAttemptWatch>
type AttemptLook = ReturnType<AttemptWatch['look']>

const SECOND_MS = 1000

/**
 * Measures, by a monotonic clock, how long endpoints have been failing and how many attempts they get. Time when the relay is down does not count.
 */
function createAttemptWatch(monotonic: () => number) {
  const failedMs = new Map<string, number>()
  const counts = createSecondCounts()
  /** The ids of the endpoints whose pace this process has learnt. */
  const learnt = new Set<string>()

  return {
    look({ settled, held }: Pick<DispatchRound, 'settled' | 'held'>) {
      const nowMs = monotonic()
      const seen = new Set<string>()
      for (const { endpointId } of settled) counts.add(endpointId, nowMs)
      for (const id of learnt) if (held?.includes(id) === false) learnt.delete(id)
      return {
        /**
         * Notes that an endpoint has failed. Returns the milliseconds since its last failure; 0: it did not fail before, or was already
         * noted in this round.
         */
        failedAfterMs(endpointId: string): number {
          if (seen.has(endpointId)) return 0
          seen.add(endpointId)
          return nowMs - (failedMs.get(endpointId) ?? nowMs)
        },
        /** Must be called when the round was committed, so that later rounds know its failures and paces. */
        keep(states: readonly EndpointState[]): void {
          for (const endpointId of seen) failedMs.set(endpointId, nowMs)
          for (const { endpoint, health } of states) if (seen.has(endpoint.id) && health.pace !== null) learnt.add(endpoint.id)
        },
        sentPerSecond: (endpointId: string) => counts.of(endpointId, nowMs),
      }
    },
    /** Drops each pace that another process has learnt, once its wait is over: whoever takes an endpoint over learns anew (DOMAIN 7.4). */
    withOwnPaces: (states: readonly EndpointState[], nowMs: number): readonly EndpointState[] =>
      states.map((state) =>
        state.health.pace === null || learnt.has(state.endpoint.id) || waitOf(state.health.pace, nowMs) !== null
          ? state
          : { ...state, health: { ...state.health, pace: null } },
      ),
  }
}

/** Counts by key over about the last second. */
function createSecondCounts() {
  const counts = new Map<string, { readonly second: number; readonly before: number; count: number }>()

  function at(key: string, nowMs: number) {
    const second = Math.floor(nowMs / SECOND_MS)
    const known = counts.get(key)
    if (known?.second === second) return known
    const next = { second, before: known?.second === second - 1 ? known.count : 0, count: 0 }
    counts.set(key, next)
    return next
  }

  return {
    add(key: string, nowMs: number): void {
      at(key, nowMs).count += 1
    },
    of(key: string, nowMs: number): number {
      const { before, count } = at(key, nowMs)
      return count + before * (1 - (nowMs % SECOND_MS) / SECOND_MS)
    },
  }
}
