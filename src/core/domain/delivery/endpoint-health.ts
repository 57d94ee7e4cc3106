import { clampRetryAfterMs, notAhead, retryAfterMaxMs } from '../instant.ts'
import { type AttemptOutcome, type EndpointRecord, isOwnFailure } from './delivery.ts'

/** How a failing endpoint is probed. Only one probe runs at a time. Times are epoch milliseconds. */
export interface Probing {
  /** When the next probe is due. */
  readonly atMs: number
  readonly failed: number
  /** Set while the endpoint answers, but refuses what is sent to it. */
  readonly refused?: Refusing
}

/**
 * The state of an endpoint that refuses deliveries but may accept others. Deliveries that were attempted in round `fromRound` or later were refused.
 * From `atMs` on, one of the other deliveries is sent as a probe.
 */
export interface Refusing {
  readonly fromRound: number
  readonly atMs: number
}

/** The health of an endpoint. Times are epoch milliseconds. */
export interface EndpointHealth extends EndpointRecord {
  /** When an attempt first failed after the endpoint last accepted a delivery, was created or was enabled; null: none has failed since then. */
  readonly failingSinceMs: number | null
  /** The ids of the parcels of the last `FAILURES_LOOKED_AT` failed attempts since `failingSinceMs`, the newest last. */
  readonly failedParcels: readonly number[]
  /** Null: the endpoint is not failing. */
  readonly probing: Probing | null
  /**
   * A counter that starts at 1. It grows when all waiting deliveries are woken, and with each failed probe. A delivery stores the round of its last
   * attempt. A delivery of an earlier round is due at once, whatever its schedule says. While the endpoint is failing, the deliveries of the
   * earliest round are probed first.
   */
  readonly round: number
  /** When all waiting deliveries were last woken; 0: never. */
  readonly wokenAtMs: number
  /** When operators were notified that the endpoint fails; null: they were not notified, or it has recovered. */
  readonly alarmedAtMs: number | null
  /** Null: the endpoint has not limited us. */
  readonly pace: Pace | null
}

/*
 * An endpoint that refuses everything is tried rarely. When it recovers, everything that waits is sent at once.
 *
 *   healthy ── the last five attempts failed, for five parcels (or all that wait, if fewer) ──► failing
 *   healthy, limiting us (`slowDown`) ── 5 min in which nothing was accepted ──► failing
 *   failing ── the pause is over: one probe ──┬─ fails ──► failing, the pause doubled, 5 s to 5 min
 *                                             └─ it or any other attempt succeeds ──► healthy, all waiting deliveries are woken
 *   failing, answering 4xx ── 5 s after the last attempt: one probe with a delivery that was not refused yet, if any waits
 *   failing, fewer than five parcels have failed ── a delivery of another parcel waits: a probe with it, at once
 *   any ── 120 h of only failures, or a 410 ──► disabled ── enabled again ──► healthy, all waiting deliveries are woken
 *
 * Waking the waiting deliveries only increments `round`, so its cost does not depend on their number. A probe is a delivery that was never attempted
 * or, if there is none, the one with the oldest last attempt. So a delivery that can never succeed is probed once per round, and holds up no others.
 * An endpoint that refuses a few parcels (4xx) may still accept others. An endpoint that gives no answer, 429 or 5xx would accept none, so it is left
 * alone during its pauses.
 */

/** An endpoint counts as failing after this many failed attempts in a row. */
const FAILURES_LOOKED_AT = 5
/** An endpoint that limits us and accepts nothing for this long is failing. */
const LIMITED_MAX_MS = 5 * 60_000
const PROBE_MIN_MS = 5000
const PROBE_MAX_MS = 5 * 60_000
const PAUSE_MAX_MS = 60 * 60_000
/** At most this much of the time between two failures counts as failing time. If more time passes, the relay may have been stopped meanwhile. */
const SEEN_MAX_MS = PAUSE_MAX_MS
/** The time of a healthy endpoint's last success is stored at most this often, because storing each success would be expensive. */
const SUCCESS_EVERY_MS = 1000

export const newHealth: EndpointHealth = {
  lastSuccessAtMs: null,
  failingSinceMs: null,
  failedForMs: 0,
  failedParcels: [],
  probing: null,
  round: 1,
  wokenAtMs: 0,
  alarmedAtMs: null,
  pace: null,
}

/** An attempt that has ended. `atMs`: when it began. `limit`: set if its answer slows the endpoint down. */
export interface HealthAttempt {
  readonly parcelId: number
  readonly outcome: AttemptOutcome
  readonly atMs: number
  readonly limit?: LimitSignal | null
}

/** Makes all waiting deliveries due at once, and ends the failing state and the wait of an endpoint that limits us. Keeps its pace. */
export function wakeWaiting(health: EndpointHealth, nowMs: number): EndpointHealth {
  return { ...health, failedParcels: [], probing: null, round: health.round + 1, wokenAtMs: nowMs, pace: withoutWait(health.pace, nowMs) }
}

/** Lets a failing endpoint be probed at once, and ends the wait of one that limits us. */
export function probeSoon(health: EndpointHealth, nowMs: number): EndpointHealth {
  const pace = withoutWait(health.pace, nowMs)
  if (health.probing === null) return pace === health.pace ? health : { ...health, pace }
  return { ...health, pace, probing: { ...health.probing, atMs: nowMs } }
}

/**
 * Returns the health of an endpoint whose key, headers or address were changed. It may now accept what it refused before, as fast as before it limited
 * us. So a failing endpoint is probed at once. If the endpoint is not failing but its last attempt failed, all waiting deliveries are due at once.
 */
export function tryChanged(before: EndpointHealth, nowMs: number): EndpointHealth {
  const health = before.pace === null ? before : { ...before, pace: null }
  if (health.probing !== null) return probeSoon(health, nowMs)
  return health.failingSinceMs === null ? health : wakeWaiting(health, nowMs)
}

/** Returns the health of an endpoint that was enabled again. Its earlier failures no longer count. */
export function resetHealth({ round }: EndpointHealth, nowMs: number): EndpointHealth {
  return wakeWaiting({ ...newHealth, round }, nowMs)
}

/**
 * Adds failing time after a failed attempt. `seenMs`: the time since the previous failure by the monotonic clock, because the wall clock may
 * be set meanwhile.
 */
export function addFailingTime(health: EndpointHealth, outcome: AttemptOutcome, seenMs: number): EndpointHealth {
  if (outcome.kind === 'accepted' || isOwnFailure(outcome) || health.failingSinceMs === null) return health
  return { ...health, failedForMs: health.failedForMs + Math.round(Math.min(SEEN_MAX_MS, Math.max(0, seenMs))) }
}

/** Returns the health of an endpoint after an attempt. One success ends the failing state. Failures that the relay itself caused change nothing. */
export function healthAfter(
  health: EndpointHealth,
  { outcome, parcelId, atMs, limit = null }: HealthAttempt,
  nowMs: number,
): EndpointHealth {
  if (isOwnFailure(outcome)) return health
  if (outcome.kind === 'accepted') {
    if (health.failingSinceMs === null && hasJustSucceeded(health, nowMs)) return health
    const healthy = { ...health, lastSuccessAtMs: nowMs, failingSinceMs: null, failedForMs: 0, failedParcels: [], alarmedAtMs: null }
    return health.probing === null ? healthy : wakeWaiting(healthy, nowMs)
  }
  const failed = {
    ...health,
    failingSinceMs: health.failingSinceMs ?? nowMs,
    // An endpoint that limits us would refuse any parcel, so its answer does not tell which parcels fail.
    failedParcels: limit === null ? [...health.failedParcels, parcelId].slice(-FAILURES_LOOKED_AT) : [],
    pace: limit === null ? health.pace : slowDown(health.pace, limit, nowMs),
  }
  const { probing } = health
  if (probing === null) return failed
  if (!isProbeDue(probing, atMs)) return { ...failed, probing: probingAfter(probing, outcome, health.round, nowMs) }
  const count = probing.failed + 1
  const next = { ...probing, atMs: nowMs + pauseMs(count, outcome), failed: count }
  return { ...failed, round: health.round + 1, probing: probingAfter(next, outcome, health.round + 1, nowMs) }
}

function probingAfter({ atMs, failed, refused }: Probing, outcome: AttemptOutcome, round: number, nowMs: number): Probing {
  if (!isRefusal(outcome)) return { atMs, failed }
  return { atMs, failed, refused: { fromRound: refused?.fromRound ?? round, atMs: nowMs + pauseMs(0, outcome) } }
}

/** Whether an endpoint has refused what was sent to it. A 429 is no such refusal, because the endpoint then accepts nothing for a while. */
function isRefusal(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'rejected' && outcome.status >= 400 && outcome.status <= 499 && outcome.status !== 429
}

function hasJustSucceeded({ lastSuccessAtMs }: EndpointHealth, nowMs: number): boolean {
  return lastSuccessAtMs !== null && nowMs >= lastSuccessAtMs && nowMs < lastSuccessAtMs + SUCCESS_EVERY_MS
}

/**
 * Whether an endpoint becomes failing. `ask`: all failures are about a few parcels, whose events may never be accepted. Then the endpoint becomes
 * failing only if no delivery of another parcel waits.
 */
export function shouldProbe({ probing, failedParcels }: EndpointHealth): 'yes' | 'no' | 'ask' {
  if (probing !== null || failedParcels.length < FAILURES_LOOKED_AT) return 'no'
  return fewFailedParcels(failedParcels).length === 0 ? 'yes' : 'ask'
}

/** Returns when an endpoint that limits us counts as failing, unless it accepts something before; null: it does not limit us, or is failing. */
function failsAtMs({ pace, probing, failingSinceMs }: EndpointHealth, nowMs: number): number | null {
  return probing !== null || failingSinceMs === null || paceAt(pace, nowMs) === null ? null : failingSinceMs + LIMITED_MAX_MS
}

/** Returns the health of an endpoint as time passes: one that limits us becomes failing if it accepts nothing for long. */
export function healthAt(health: EndpointHealth, nowMs: number): EndpointHealth {
  const failsMs = failsAtMs(health, nowMs)
  if (failsMs === null || nowMs < failsMs) return health
  return { ...health, probing: { atMs: Math.max(nowMs + PROBE_MIN_MS, waitOf(health.pace, nowMs) ?? 0), failed: 0 } }
}

/** Returns when to look at an endpoint again to which nothing may be sent now, because it limits us; null: it may be sent something. */
export function pausedUntil(health: EndpointHealth, nowMs: number): number | null {
  const waitMs = waitOf(health.pace, nowMs)
  return waitMs === null ? null : Math.min(waitMs, failsAtMs(health, nowMs) ?? waitMs)
}

/** The first probe comes after a pause. */
export function startProbing(health: EndpointHealth, outcome: AttemptOutcome, nowMs: number): EndpointHealth {
  const probing = { atMs: nowMs + pauseMs(0, outcome), failed: 0 }
  return { ...health, probing: probingAfter(probing, outcome, health.round, nowMs) }
}

/** Returns the ids of the parcels whose attempts failed. If many failed, the endpoint probably refuses every parcel, and the list is empty. */
function fewFailedParcels(failedParcels: readonly number[]): readonly number[] {
  const distinct = [...new Set(failedParcels)]
  return distinct.length < FAILURES_LOOKED_AT ? distinct : []
}

/** Whether a probe is due. If its time is further away than the longest pause, the clock was set back, and the probe is due too. */
export function isProbeDue({ atMs }: { readonly atMs: number }, nowMs: number): boolean {
  return atMs <= nowMs || atMs > nowMs + PAUSE_MAX_MS
}

/** Selects deliveries that wait for a failing endpoint. From `atMs` on (epoch milliseconds), one of them may be the next probe. */
export interface ProbeLook {
  readonly atMs: number
  readonly exceptParcelIds: readonly number[]
  /** Leaves out deliveries that were attempted in this round or later; null: leaves out none. */
  readonly beforeRound: number | null
}

/** Returns the selections among which to look for the next probe of a failing endpoint, the earliest first. Empty: the endpoint is not failing. */
export function probeLooks({ probing, failedParcels }: EndpointHealth, nowMs: number): readonly ProbeLook[] {
  if (probing === null) return []
  const any: ProbeLook = { atMs: isProbeDue(probing, nowMs) ? nowMs : probing.atMs, exceptParcelIds: [], beforeRound: null }
  if (any.atMs === nowMs) return [any]
  // If only a few parcels have failed, a delivery of another parcel may go at once. It shows whether the cause is these parcels or the endpoint.
  const exceptParcelIds = fewFailedParcels(failedParcels)
  const others = exceptParcelIds.length === 0 ? [] : [{ ...any, atMs: nowMs, exceptParcelIds }]
  const { refused } = probing
  if (refused === undefined) return [...others, any]
  const unrefused = { ...any, atMs: isProbeDue(refused, nowMs) ? nowMs : refused.atMs, beforeRound: refused.fromRound }
  return [...others, ...[unrefused, any].toSorted((one, other) => one.atMs - other.atMs)]
}

/** Sets `alarmedAtMs` if the endpoint has failed for so long that operators must be notified. One that limits us must be failing for that. */
export function alarmAfter(health: EndpointHealth, failingAfterMs: number, nowMs: number): EndpointHealth {
  const isFailing = health.failingSinceMs !== null && failsAtMs(health, nowMs) === null
  const isDue = health.alarmedAtMs === null && isFailing && health.failedForMs >= failingAfterMs
  return isDue ? { ...health, alarmedAtMs: nowMs } : health
}

/** After the clock was set back, replaces times in the future with the present time. Otherwise they would count as later than new times. */
export function clampHealthToClock(health: EndpointHealth, nowMs: number): EndpointHealth {
  const { lastSuccessAtMs, failingSinceMs, probing, wokenAtMs, alarmedAtMs, pace } = health
  return {
    ...health,
    lastSuccessAtMs: notAhead(lastSuccessAtMs, nowMs),
    failingSinceMs: notAhead(failingSinceMs, nowMs),
    wokenAtMs: notAhead(wokenAtMs, nowMs),
    alarmedAtMs: notAhead(alarmedAtMs, nowMs),
    probing: probing === null ? null : clampProbing(probing, nowMs),
    pace: clampPaceToClock(pace, nowMs),
  }
}

function clampProbing({ refused, ...probing }: Probing, nowMs: number): Probing {
  const clamped = { ...probing, atMs: Math.min(probing.atMs, nowMs + PROBE_MAX_MS) }
  return refused === undefined ? clamped : { ...clamped, refused: { ...refused, atMs: Math.min(refused.atMs, nowMs + PROBE_MIN_MS) } }
}

/** Returns the pause before the next probe, after `failed` failed probes. It is at least as long as the receiver's `Retry-After`. */
function pauseMs(failed: number, outcome: AttemptOutcome): number {
  const ownMs = Math.min(PROBE_MAX_MS, PROBE_MIN_MS * 2 ** Math.min(failed, 10))
  const askedMs = outcome.kind === 'rejected' ? outcome.retryAfterMs : null
  return askedMs === null ? ownMs : Math.max(ownMs, clampRetryAfterMs(askedMs))
}

/** How fast an endpoint is sent deliveries, learnt from the answers by which it limits us. Times are epoch milliseconds. */
export interface Pace {
  /** Attempts a second at the end of the wait. From then on the pace grows. */
  readonly perSecond: number
  /** The pace at which the endpoint last refused: about what it takes. */
  readonly limitPerSecond: number
  readonly halvedAtMs: number
  /** Nothing is sent before this time. */
  readonly waitUntilMs: number
}

/** An answer by which an endpoint limits us. */
export interface LimitSignal {
  /** When the attempt began. */
  readonly atMs: number
  readonly retryAfterMs: number | null
  /** How many attempts were made in the last second. Counts only if no pace is known yet. */
  readonly sentPerSecond: number
  /** The setting `rate` of the endpoint; null: it has none. */
  readonly ratePerSecond: number | null
}

/*
 * The pace follows what the endpoint takes, as TCP does: an answer that limits us halves it, then it grows by a fixed amount each second. Answers to
 * attempts that began before the pace was halved belong to the same signal, so eight refusals in flight halve it once.
 */

/** One attempt in five seconds. */
const FLOOR_PER_SECOND = 0.2
const HALVED_EVERY_MS = 1000
/** The wait after an answer that asks for none. */
const WAIT_MS = 1000
/** The pace doubles in this many seconds, but grows by at least `GROWTH_MIN` a second. */
const DOUBLED_IN_SECONDS = 30
const GROWTH_MIN = 0.1
/** An endpoint that has not limited us for this long after its last wait is sent everything at once again. */
const FORGOTTEN_AFTER_MS = 5 * 60_000

/** Returns the attempts a second that may be made now; null: no pace is known, or it was forgotten. */
export function paceAt(pace: Pace | null, nowMs: number): number | null {
  if (pace === null || nowMs >= pace.waitUntilMs + FORGOTTEN_AFTER_MS) return null
  const { perSecond, waitUntilMs } = pace
  const growth = Math.max(GROWTH_MIN, perSecond / DOUBLED_IN_SECONDS)
  return perSecond + (growth * Math.max(0, nowMs - waitUntilMs)) / 1000
}

/** Returns when the endpoint may be sent something again; null: it may be now. */
export function waitOf(pace: Pace | null, nowMs: number): number | null {
  return pace !== null && pace.waitUntilMs > nowMs ? pace.waitUntilMs : null
}

/** What is told of an endpoint that limits us. */
export interface ShownLimit {
  /** About how many deliveries it takes in a second. */
  readonly perSecond: number
  /** Until when nothing is sent, as it asked, epoch milliseconds; null: it is sent deliveries. */
  readonly waitUntilMs: number | null
}

/** Null: the endpoint does not limit us now. */
export function limitOf(pace: Pace | null, nowMs: number): ShownLimit | null {
  return pace === null || paceAt(pace, nowMs) === null ? null : { perSecond: pace.limitPerSecond, waitUntilMs: waitOf(pace, nowMs) }
}

export function describeLimit(perSecond: number): string {
  return `limits us to about ${perSecond >= 1 ? `${Math.round(perSecond)}/s` : `one in ${Math.round(1 / perSecond)} s`}`
}

/** Halves the pace, at most once a second and once for all attempts that were in flight together, and waits as the answer asks. */
export function slowDown(pace: Pace | null, { atMs, retryAfterMs, sentPerSecond, ratePerSecond }: LimitSignal, nowMs: number): Pace {
  const waitUntilMs = Math.max(pace?.waitUntilMs ?? 0, nowMs + clampRetryAfterMs(retryAfterMs ?? WAIT_MS))
  const known = paceAt(pace, nowMs)
  if (pace !== null && known !== null && !isNewSignal(pace, atMs, nowMs)) return { ...pace, waitUntilMs }
  const limitPerSecond = Math.max(FLOOR_PER_SECOND, Math.min(known ?? sentPerSecond, ratePerSecond ?? Number.POSITIVE_INFINITY))
  return { perSecond: Math.max(FLOOR_PER_SECOND, limitPerSecond / 2), limitPerSecond, halvedAtMs: nowMs, waitUntilMs }
}

/** Returns the pace without its wait. */
function withoutWait(pace: Pace | null, nowMs: number): Pace | null {
  return pace === null || waitOf(pace, nowMs) === null ? pace : { ...pace, waitUntilMs: nowMs }
}

/** See `clampHealthToClock`. */
function clampPaceToClock(pace: Pace | null, nowMs: number): Pace | null {
  if (pace === null) return null
  return { ...pace, halvedAtMs: notAhead(pace.halvedAtMs, nowMs), waitUntilMs: Math.min(pace.waitUntilMs, nowMs + retryAfterMaxMs) }
}

/** If the clock was set back behind the last halving, the signal counts as new. */
function isNewSignal({ halvedAtMs }: Pace, atMs: number, nowMs: number): boolean {
  return nowMs < halvedAtMs || (atMs >= halvedAtMs && nowMs - halvedAtMs >= HALVED_EVERY_MS)
}
