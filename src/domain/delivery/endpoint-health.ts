import { notAhead } from '../put-back.ts'
import { clampRetryAfterMs } from '../retry-after.ts'
import { type AttemptOutcome, type EndpointRecord, isOwnFailure } from './delivery.ts'

/** How a failing endpoint is probed. Times are epoch milliseconds. Only one probe runs at a time. */
export interface Probing {
  /** When the next probe is due. */
  readonly atMs: number
  /** How many probes failed. */
  readonly failed: number
  /** Set while the endpoint answers and refuses what it is sent. */
  readonly refused?: Refusing
}

/**
 * An endpoint that refuses some deliveries may accept others. Deliveries whose last attempt was in round `fromRound` or later were refused.
 * From `atMs` on, a delivery that was not refused is probed.
 */
export interface Refusing {
  readonly fromRound: number
  readonly atMs: number
}

/** The health of an endpoint. Times are epoch milliseconds. */
export interface EndpointHealth extends EndpointRecord {
  /** The first failure since it last accepted a delivery, was created or was enabled; `null`: there was none. */
  readonly failingSinceMs: number | null
  /** The parcels whose attempts have failed since then, by id: the last `FAILURES_LOOKED_AT`, the newest last. */
  readonly failedParcels: readonly number[]
  /** Set while the endpoint is failing; `null`: it is not failing. */
  readonly probing: Probing | null
  /**
   * A counter that starts at 1. It grows when all waiting deliveries are woken, and with each failed probe. A delivery keeps the round of
   * its last attempt. If that round is over, the delivery is due at once, whatever its schedule says. While the endpoint is failing,
   * deliveries of the earliest round are probed first.
   */
  readonly round: number
  /** When all waiting deliveries were last woken; 0: never. */
  readonly wokenAtMs: number
  /** When operators were notified that it fails; null: they were not, or it has recovered. */
  readonly alarmedAtMs: number | null
}

/*
 * An endpoint that refuses everything is tried rarely, and one that recovers is sent everything at once.
 *
 *   healthy ── the last five attempts failed, of five parcels, or of all that wait if those are fewer ──► failing
 *   failing ── the pause is over: one probe ──┬─ fails ──► failing, the pause doubled, 5 s to 5 min
 *                                             └─ succeeds, as may any other attempt ──► healthy, all that waits is woken
 *   failing, answering 4xx ── 5 s after the last attempt: one probe with what was not refused yet, as long as there is any
 *   failing, fewer than five parcels have failed ── another one waits: a probe with it, at once
 *   any ── 120 h of only failures, or a 410 ──► disabled ── enabled again ──► healthy, all that waits is woken
 *
 * Waking is a mark on the endpoint (`round`), so its cost does not depend on how much waits. A probe is a delivery that was never attempted, or else the
 * one whose last attempt is longest ago. So a delivery that can never succeed is probed once per round and does not hold up the others.
 * A few refused parcels say nothing about the others, so an endpoint that refuses (4xx) may accept the next. One that gives no answer, 429 or
 * 5xx would accept none, so it is left alone during its pauses.
 */

/** An endpoint is failing after this many failed attempts in a row. */
const FAILURES_LOOKED_AT = 5
const PROBE_MIN_MS = 5000
const PROBE_MAX_MS = 5 * 60_000
const PAUSE_MAX_MS = 60 * 60_000
/** Up to this much of the time between two failures counts as failing time. During a longer time the relay may not have been running. */
const SEEN_MAX_MS = PAUSE_MAX_MS
/**
 * How old the stored time of a healthy endpoint's last success may be. Storing each success would cost as much as storing everything else
 * about the endpoint.
 */
const SUCCESS_EVERY_MS = 1000

/** The health of an endpoint that was just created. */
export const newHealth: EndpointHealth = {
  lastSuccessAtMs: null,
  failingSinceMs: null,
  failedForMs: 0,
  failedParcels: [],
  probing: null,
  round: 1,
  wokenAtMs: 0,
  alarmedAtMs: null,
}

/** An attempt that ended; `atMs`: when it began. */
export interface HealthAttempt {
  readonly parcelId: number
  readonly outcome: AttemptOutcome
  readonly atMs: number
}

/** Makes everything that waits due at once, and ends the failing state. */
export function wakeWaiting(health: EndpointHealth, nowMs: number): EndpointHealth {
  return { ...health, failedParcels: [], probing: null, round: health.round + 1, wokenAtMs: nowMs }
}

/** Makes the next probe due now, if the endpoint is failing. */
export function probeSoon(health: EndpointHealth, nowMs: number): EndpointHealth {
  return health.probing === null ? health : { ...health, probing: { ...health.probing, atMs: nowMs } }
}

/**
 * The health of an endpoint whose key, headers or address have changed. What it refused before it may accept now, so nothing waits for the
 * next probe or for the schedule.
 */
export function tryChanged(health: EndpointHealth, nowMs: number): EndpointHealth {
  if (health.probing !== null) return probeSoon(health, nowMs)
  return health.failingSinceMs === null ? health : wakeWaiting(health, nowMs)
}

/** The health of an endpoint that was enabled again. Its earlier failures no longer count. */
export function resetHealth({ round }: EndpointHealth, nowMs: number): EndpointHealth {
  return wakeWaiting({ ...newHealth, round }, nowMs)
}

/**
 * Adds failing time after a failed attempt. `seenMs`: the measured time since the failure before it. A difference of two dates would not
 * do, because setting the clock would turn a second into days.
 */
export function addFailingTime(health: EndpointHealth, outcome: AttemptOutcome, seenMs: number): EndpointHealth {
  if (outcome.kind === 'accepted' || isOwnFailure(outcome) || health.failingSinceMs === null) return health
  return { ...health, failedForMs: health.failedForMs + Math.round(Math.min(SEEN_MAX_MS, Math.max(0, seenMs))) }
}

/**
 * The health of an endpoint after an attempt. One success ends the failing state. Failures that the relay itself has caused change nothing.
 */
export function healthAfter(health: EndpointHealth, { outcome, parcelId, atMs }: HealthAttempt, nowMs: number): EndpointHealth {
  if (isOwnFailure(outcome)) return health
  if (outcome.kind === 'accepted') {
    if (health.failingSinceMs === null && hasJustSucceeded(health, nowMs)) return health
    const healthy = { ...health, lastSuccessAtMs: nowMs, failingSinceMs: null, failedForMs: 0, failedParcels: [], alarmedAtMs: null }
    return health.probing === null ? healthy : wakeWaiting(healthy, nowMs)
  }
  const failed = {
    ...health,
    failingSinceMs: health.failingSinceMs ?? nowMs,
    failedParcels: [...health.failedParcels, parcelId].slice(-FAILURES_LOOKED_AT),
  }
  const { probing } = health
  if (probing === null) return failed
  if (!isProbeDue(probing, atMs)) return { ...failed, probing: probingAfter(probing, outcome, health.round, nowMs) }
  const count = probing.failed + 1
  const next = { ...probing, atMs: nowMs + pauseMs(count, outcome), failed: count }
  return { ...failed, round: health.round + 1, probing: probingAfter(next, outcome, health.round + 1, nowMs) }
}

/** The probing of a failing endpoint after another failed attempt in this round. */
function probingAfter({ atMs, failed, refused }: Probing, outcome: AttemptOutcome, round: number, nowMs: number): Probing {
  if (!isRefusal(outcome)) return { atMs, failed }
  return { atMs, failed, refused: { fromRound: refused?.fromRound ?? round, atMs: nowMs + pauseMs(0, outcome) } }
}

/**
 * Whether an endpoint has refused what it was sent: it answered 4xx. A 429 does not refuse the event, because such an endpoint refuses
 * everything for a while.
 */
function isRefusal(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'rejected' && outcome.status >= 400 && outcome.status <= 499 && outcome.status !== 429
}

function hasJustSucceeded({ lastSuccessAtMs }: EndpointHealth, nowMs: number): boolean {
  return lastSuccessAtMs !== null && nowMs >= lastSuccessAtMs && nowMs < lastSuccessAtMs + SUCCESS_EVERY_MS
}

/**
 * Whether an endpoint becomes failing. `ask`: only few parcels have failed, and their events may never be accepted. So the endpoint becomes
 * failing only if no delivery of another parcel waits.
 */
export function shouldProbe({ probing, failedParcels }: EndpointHealth): 'yes' | 'no' | 'ask' {
  if (probing !== null || failedParcels.length < FAILURES_LOOKED_AT) return 'no'
  return fewFailedParcels(failedParcels).length === 0 ? 'yes' : 'ask'
}

/** Makes an endpoint failing. The first probe comes after a pause. */
export function startProbing(health: EndpointHealth, outcome: AttemptOutcome, nowMs: number): EndpointHealth {
  const probing = { atMs: nowMs + pauseMs(0, outcome), failed: 0 }
  return { ...health, probing: probingAfter(probing, outcome, health.round, nowMs) }
}

/** The parcels whose attempts failed, by id. Empty if there are too many to expect that events of other parcels are accepted. */
function fewFailedParcels(failedParcels: readonly number[]): readonly number[] {
  const distinct = [...new Set(failedParcels)]
  return distinct.length < FAILURES_LOOKED_AT ? distinct : []
}

/** Whether a probe is due. If its time is further away than any pause, the clock was put back since, so the probe is due too. */
export function isProbeDue({ atMs }: { readonly atMs: number }, nowMs: number): boolean {
  return atMs <= nowMs || atMs > nowMs + PAUSE_MAX_MS
}

/** Some of the deliveries that wait for a failing endpoint, and from when on one of them may be the next probe (epoch milliseconds). */
export interface ProbeLook {
  readonly atMs: number
  /** The ids of parcels to leave out. */
  readonly exceptParcelIds: readonly number[]
  /** Leaves out deliveries that were last attempted in this round or later; null: leaves out none. */
  readonly beforeRound: number | null
}

/** Where the next probe of a failing endpoint may come from, the earliest first. Empty: it is not failing. */
export function probeLooks({ probing, failedParcels }: EndpointHealth, nowMs: number): readonly ProbeLook[] {
  if (probing === null) return []
  const any: ProbeLook = { atMs: isProbeDue(probing, nowMs) ? nowMs : probing.atMs, exceptParcelIds: [], beforeRound: null }
  if (any.atMs === nowMs) return [any]
  // If all failures are of few parcels, a delivery of another parcel may go at once. It shows whether these parcels or the endpoint is at
  // fault.
  const exceptParcelIds = fewFailedParcels(failedParcels)
  const others = exceptParcelIds.length === 0 ? [] : [{ ...any, atMs: nowMs, exceptParcelIds }]
  const { refused } = probing
  if (refused === undefined) return [...others, any]
  const unrefused = { ...any, atMs: isProbeDue(refused, nowMs) ? nowMs : refused.atMs, beforeRound: refused.fromRound }
  return [...others, ...[unrefused, any].toSorted((one, other) => one.atMs - other.atMs)]
}

/** Marks the health of an endpoint that has been failing for long enough to notify operators. */
export function alarmAfter(health: EndpointHealth, failingAfterMs: number, nowMs: number): EndpointHealth {
  const isDue = health.alarmedAtMs === null && health.failingSinceMs !== null && health.failedForMs >= failingAfterMs
  return isDue ? { ...health, alarmedAtMs: nowMs } : health
}

/** Moves times in the future to now, after the clock was put back. Otherwise they would count as later than all times to come. */
export function clampHealthToClock(health: EndpointHealth, nowMs: number): EndpointHealth {
  const { lastSuccessAtMs, failingSinceMs, probing, wokenAtMs, alarmedAtMs } = health
  return {
    ...health,
    lastSuccessAtMs: notAhead(lastSuccessAtMs, nowMs),
    failingSinceMs: notAhead(failingSinceMs, nowMs),
    wokenAtMs: notAhead(wokenAtMs, nowMs),
    alarmedAtMs: notAhead(alarmedAtMs, nowMs),
    probing: probing === null ? null : clampProbing(probing, nowMs),
  }
}

function clampProbing({ refused, ...probing }: Probing, nowMs: number): Probing {
  const clamped = { ...probing, atMs: Math.min(probing.atMs, nowMs + PROBE_MAX_MS) }
  return refused === undefined ? clamped : { ...clamped, refused: { ...refused, atMs: Math.min(refused.atMs, nowMs + PROBE_MIN_MS) } }
}

/** The pause before the next probe, after `failed` failed probes. It is at least as long as the receiver asked for. */
function pauseMs(failed: number, outcome: AttemptOutcome): number {
  const ownMs = Math.min(PROBE_MAX_MS, PROBE_MIN_MS * 2 ** Math.min(failed, 10))
  const askedMs = outcome.kind === 'rejected' ? outcome.retryAfterMs : null
  return askedMs === null ? ownMs : Math.max(ownMs, clampRetryAfterMs(askedMs))
}
