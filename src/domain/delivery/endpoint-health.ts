import { clampRetryAfterMs } from '../retry-after.ts'
import { type AttemptOutcome, type EndpointRecord, isOwnFailure } from './delivery.ts'

/** How an endpoint fares. Times are epoch milliseconds. */
export interface EndpointHealth extends EndpointRecord {
  /** The first failure since it last accepted something, was created or was enabled; `null`: there was none. */
  readonly failingSinceMs: number | null
  /** The parcels, by id, whose attempts failed since then: the last `FAILURES_LOOKED_AT`, the newest last. */
  readonly failedParcels: readonly number[]
  /** It is failing: one probe at a time goes to it, the next at a time, after so many that failed; `null`: it is not. */
  readonly probing: { readonly atMs: number; readonly failed: number } | null
  /**
   * Grows when everything that waits is woken, and with each probe that fails; from 1 on. A delivery keeps the round it was last attempted in: if
   * that is over, it is due at once, whatever its schedule says, and while the endpoint is failing the earliest round is probed first.
   */
  readonly round: number
  /** When everything that waited was last woken; 0: never. */
  readonly wokenAtMs: number
}

/*
 * An endpoint that refuses everything is asked seldom, and a mended one is sent everything at once.
 *
 *   healthy ── the last five attempts failed, over two parcels where it has them ──► failing
 *   failing ── the pause is over: one probe ──┬─ fails ──► failing, the pause doubled, 5 s to 5 min
 *                                             └─ is accepted, as is any other attempt ──► healthy, everything that waits woken
 *   any ── 120 h of only failures, or a 410 ──► disabled ── enabled again ──► healthy, everything that waits woken
 *
 * Waking is a mark on the endpoint (`round`), so it costs the same however much waits. A probe is a delivery that was never attempted, or else the
 * one whose last attempt is longest ago: so one that can never be accepted is probed once in a round, and does not keep the others waiting.
 */

/** So many attempts in a row that failed make an endpoint failing. */
const FAILURES_LOOKED_AT = 5
const PROBE_MIN_MS = 5000
const PROBE_MAX_MS = 5 * 60_000
/** The longest a receiver's `Retry-After` is obeyed, and so the longest pause of all. */
const PAUSE_MAX_MS = 60 * 60_000
/** Time between two failures counts as failing up to this much: a longer one was not seen to pass. */
const SEEN_MAX_MS = PAUSE_MAX_MS

/** An endpoint that was just created. */
export const newHealth: EndpointHealth = {
  lastSuccessAtMs: null,
  failingSinceMs: null,
  failedForMs: 0,
  failedParcels: [],
  probing: null,
  round: 1,
  wokenAtMs: 0,
}

/** What an attempt of one parcel's delivery came to; `atMs`: when it began. */
export interface HealthAttempt {
  readonly parcelId: number
  readonly outcome: AttemptOutcome
  readonly atMs: number
}

/** Everything that waits is due at once, and the endpoint is not failing until it fails anew. */
export function wakeWaiting(health: EndpointHealth, nowMs: number): EndpointHealth {
  return { ...health, failedParcels: [], probing: null, round: health.round + 1, wokenAtMs: nowMs }
}

/** If the endpoint is failing it is probed now. */
export function probeSoon(health: EndpointHealth, nowMs: number): EndpointHealth {
  return health.probing === null ? health : { ...health, probing: { ...health.probing, atMs: nowMs } }
}

/** An endpoint that was enabled again: what was before is not held against it. */
export function resetHealth({ round }: EndpointHealth, nowMs: number): EndpointHealth {
  return wakeWaiting({ ...newHealth, round }, nowMs)
}

/**
 * The health of an endpoint that is failing when some time has been seen to pass since the last failure, or the one before that, in which it
 * took nothing. Time is not the difference of two dates: a clock that is set would make days of a second.
 */
export function addFailingTime(health: EndpointHealth, outcome: AttemptOutcome, seenMs: number): EndpointHealth {
  if (outcome.kind === 'accepted' || isOwnFailure(outcome) || health.failingSinceMs === null) return health
  return { ...health, failedForMs: health.failedForMs + Math.min(SEEN_MAX_MS, Math.max(0, seenMs)) }
}

/** The health of an endpoint after an attempt: one success ends the failing, however sporadic it is; what it had no part in says nothing. */
export function healthAfter(health: EndpointHealth, { outcome, parcelId, atMs }: HealthAttempt, nowMs: number): EndpointHealth {
  if (isOwnFailure(outcome)) return health
  if (outcome.kind === 'accepted') {
    if (health.lastSuccessAtMs === nowMs && health.failingSinceMs === null) return health
    const healthy = { ...health, lastSuccessAtMs: nowMs, failingSinceMs: null, failedForMs: 0, failedParcels: [] }
    return health.probing === null ? healthy : wakeWaiting(healthy, nowMs)
  }
  const failed = {
    ...health,
    failingSinceMs: health.failingSinceMs ?? nowMs,
    failedParcels: [...health.failedParcels, parcelId].slice(-FAILURES_LOOKED_AT),
  }
  if (health.probing === null || !isProbeDue(health.probing, atMs)) return failed
  const count = health.probing.failed + 1
  return { ...failed, round: health.round + 1, probing: { atMs: nowMs + pauseMs(count, outcome), failed: count } }
}

/**
 * Whether an endpoint is to be probed from now on. `ask`: only if nothing of another parcel waits for it than of the one it refused so often:
 * one event that is never accepted says nothing of the others.
 */
export function shouldProbe({ probing, failedParcels }: EndpointHealth): 'yes' | 'no' | 'ask' {
  if (probing !== null || failedParcels.length < FAILURES_LOOKED_AT) return 'no'
  return onlyFailedParcel(failedParcels) === null ? 'yes' : 'ask'
}

export function startProbing(health: EndpointHealth, outcome: AttemptOutcome, nowMs: number): EndpointHealth {
  return { ...health, probing: { atMs: nowMs + pauseMs(0, outcome), failed: 0 } }
}

/** The one parcel that all these are; null: there are several. */
export function onlyFailedParcel(failedParcels: readonly number[]): number | null {
  const [first] = failedParcels
  return first !== undefined && failedParcels.every((parcelId) => parcelId === first) ? first : null
}

/** A time further off than any pause is one of a clock that was put back since. */
export function isProbeDue({ atMs }: { readonly atMs: number }, nowMs: number): boolean {
  return atMs <= nowMs || atMs > nowMs + PAUSE_MAX_MS
}

/** The health of an endpoint when the clock was put back: what lies in a future that was taken back would count as later than all to come. */
export function clampHealthToClock(health: EndpointHealth, nowMs: number): EndpointHealth {
  const past = (atMs: number | null) => (atMs === null ? null : Math.min(atMs, nowMs))
  const { lastSuccessAtMs, failingSinceMs, probing, wokenAtMs } = health
  return {
    ...health,
    lastSuccessAtMs: past(lastSuccessAtMs),
    failingSinceMs: past(failingSinceMs),
    wokenAtMs: Math.min(wokenAtMs, nowMs),
    probing: probing === null ? null : { ...probing, atMs: Math.min(probing.atMs, nowMs + PROBE_MAX_MS) },
  }
}

/** How long until the next probe, after so many that failed: never sooner than the receiver asked. */
function pauseMs(failed: number, outcome: AttemptOutcome): number {
  const ownMs = Math.min(PROBE_MAX_MS, PROBE_MIN_MS * 2 ** Math.min(failed, 10))
  const askedMs = outcome.kind === 'rejected' ? outcome.retryAfterMs : null
  return askedMs === null ? ownMs : Math.max(ownMs, clampRetryAfterMs(askedMs))
}
