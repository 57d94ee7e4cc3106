import { bestPollTimeMs, expectedUnknownEntries } from './best-poll-time.ts'
import type { PushHealth } from './push-health.ts'
import { hourlyRatesAt, hourlyRatesOf, missingBefore, type ScanRate, statusShares } from './scan-rate.ts'

/** How often to ask (CONTRACT `poll`); every duration in milliseconds. */
export interface CadencePolicy {
  /** By latest status: the interval between checks, and so what a check may cost. What is learnt moves checks, it does not add to them. */
  readonly byStatusMs: Readonly<Record<string, number>>
  readonly defaultMs: number
  /** Intervals are multiplied by at least this while pushes can be relied on; 1: by no more, whatever is lost. */
  readonly whenPushIsHealthy: number
  /** Checks after delivery, counted from it. */
  readonly tailMs: readonly number[]
  /** Without anything new for this long, a parcel is asked about no more. */
  readonly staleAfterMs: number
}

/** What the next check of a parcel depends on apart from what holds for all of them. Times are epoch milliseconds. */
export interface CadenceFacts {
  readonly parcelId: number
  /** Of the first entry of the history; null: it has none. */
  readonly latest: { readonly status: string; readonly atMs: number } | null
  /** How many entries are known of it. */
  readonly entryCount: number
  /** Since when it is asked about; null: it is not. */
  readonly watchedAtMs: number | null
  /** When it was last asked for by an app, watched or pushed: what revives it. */
  readonly activatedAtMs: number
  /** When the carrier was last asked, with or without success; null: never. */
  readonly checkedAtMs: number | null
  /** Checks that failed since the last that did not. */
  readonly failures: number
  /** Whether the carrier knows none of its identifiers. */
  readonly unpollable: boolean
}

/** What holds for all parcels when a check is planned. */
export interface CadenceModel {
  readonly pushHealth: PushHealth
  /** The part of pushes that is lost, while they come at all. */
  readonly pushLoss: number
  readonly scanRate: ScanRate
}

export type NextCheck =
  | { readonly kind: 'at'; readonly atMs: number }
  | { readonly kind: 'stopped'; readonly reason: 'delivered' | 'stale' | 'unknown' }

/** The status after which none is expected. */
export const FINISHED = 'DeliverySucceeded'
/** A failed check is tried again after a minute, then two, four ..., never later than its own interval. */
const RETRY_MS = 60_000
/** Intervals differ by up to this part from parcel to parcel, so that parcels that came together do not fall due together. */
const STAGGER = 0.1

/** Scans an hour of a parcel of which nothing is learnt: about two a day. */
const UNSEEN_RATE = 0.1
/** When calls are scarce a parcel's turn comes about twice a day. */
const TURN_MS = 12 * 3_600_000
const LONG_WAIT_WEIGHT = 0.15
const FIRST_CHECK_MS = 60_000
/** A check is never made sooner than this part of its interval after the last one, however likely a scan is. */
const SOONEST = 0.25
/** Nor later than a day, where the interval itself is no longer: what was learnt may have ceased to be true. */
const LATEST_MS = 24 * 3_600_000
const HOUR_MS = 3_600_000
const STEP_MAX_MS = HOUR_MS / 4

/** When to ask the carrier about a parcel again (DOMAIN 6.1). A time in the past is due now. */
export function nextCheck(facts: CadenceFacts, model: CadenceModel, policy: CadencePolicy): NextCheck {
  if (facts.unpollable) return { kind: 'stopped', reason: 'unknown' }
  if (facts.failures > 0 && facts.checkedAtMs !== null) {
    const retryMs = Math.min(RETRY_MS * 2 ** Math.min(facts.failures - 1, 20), intervalMs(facts, model, policy))
    return { kind: 'at', atMs: facts.checkedAtMs + staggered(retryMs, facts.parcelId) }
  }
  return facts.latest?.status === FINISHED ? closingCheck(facts, facts.latest.atMs, model, policy) : regularCheck(facts, model, policy)
}

/**
 * A closing check as soon as delivery is known, the tail, then no more. What a push brought or an app asked for since the last check revives
 * it for one more: news of a delivery can come later than a check that did not show it yet, and people ask about what is delivered for long.
 */
function closingCheck(facts: CadenceFacts, deliveredAtMs: number, model: CadenceModel, policy: CadencePolicy): NextCheck {
  const { checkedAtMs, activatedAtMs, parcelId } = facts
  const closing = closingMs(model, policy)
    .map((afterMs) => deliveredAtMs + staggered(afterMs, parcelId))
    .filter((atMs) => atMs > (checkedAtMs ?? Number.NEGATIVE_INFINITY))
  const [next] = closing
  if (checkedAtMs === null || activatedAtMs <= checkedAtMs || (next !== undefined && model.pushHealth === 'healthy')) {
    return next === undefined ? { kind: 'stopped', reason: 'delivered' } : { kind: 'at', atMs: next }
  }
  const revivalMs = Math.max(activatedAtMs, checkedAtMs + staggered(intervalMs(facts, model, policy), parcelId))
  return { kind: 'at', atMs: Math.min(revivalMs, next ?? revivalMs) }
}

/**
 * When delivered parcels are checked, counted from delivery. As intervals are longer while pushes are healthy, the tail is thinner: its
 * first check is the closing one, its last the last, and what comes between is left to the pushes.
 */
function closingMs({ pushHealth }: CadenceModel, { tailMs, whenPushIsHealthy }: CadencePolicy): readonly number[] {
  if (pushHealth !== 'healthy' || whenPushIsHealthy <= 1 || tailMs.length === 0) return [0, ...tailMs]
  return [...new Set([...tailMs.slice(0, 1), ...tailMs.slice(-1)])]
}

function regularCheck(facts: CadenceFacts, model: CadenceModel, policy: CadencePolicy): NextCheck {
  const atMs = plannedMs(facts, model, policy)
  const newestMs = Math.max(facts.latest?.atMs ?? Number.NEGATIVE_INFINITY, facts.activatedAtMs)
  if (atMs <= newestMs + policy.staleAfterMs) return { kind: 'at', atMs }
  return { kind: 'stopped', reason: facts.latest === null ? 'unknown' : 'stale' }
}

function plannedMs(facts: CadenceFacts, model: CadenceModel, policy: CadencePolicy): number {
  const { latest, checkedAtMs, parcelId } = facts
  // Nothing is known and nobody was asked: there is nothing to wait for but a push that may be on its way.
  if (latest === null && checkedAtMs === null) return facts.activatedAtMs + Math.min(FIRST_CHECK_MS, statusIntervalMs(undefined, policy))
  const learnt = latest === null ? null : hourlyRatesOf(model.scanRate, latest.status, facts.entryCount)
  const fullMs = statusIntervalMs(latest?.status, policy)
  if (latest === null || learnt === null)
    return (checkedAtMs ?? facts.activatedAtMs) + staggered(intervalMs(facts, model, policy), parcelId)

  const certainMs = Math.max(latest.atMs, checkedAtMs ?? latest.atMs)
  const latestMs = Math.max(LATEST_MS, intervalMs(facts, model, policy))
  const lookMs = bestPollTimeMs({
    fromMs: certainMs,
    hourlyRates: learnt,
    priceHours: priceHours(facts, learnt.meanRate, model, policy),
    hidden: hiddenPart(model, policy),
    doubt: doubtOf(facts, model, policy),
    horizonMs: latestMs,
    stepMs: Math.min(fullMs / 8, STEP_MAX_MS),
  })
  const waitMs = Math.min(latestMs, Math.max(lookMs - certainMs, fullMs * SOONEST))
  return Math.max(certainMs + staggered(waitMs, parcelId), (checkedAtMs ?? 0) + 1)
}

/**
 * What a check may cost. The interval an operator chose for a status says it: at scans of the mean rate it is exactly the interval that
 * pays. While pushes are healthy polls only look for gaps, and a gap is as bad in one status as in another: then one price holds for all,
 * at which as many checks are made as the intervals would make together.
 */
function priceHours(facts: CadenceFacts, meanRate: number, model: CadenceModel, policy: CadencePolicy): number {
  return model.pushHealth === 'healthy'
    ? priceForAll(model.scanRate, policy)
    : priceOf(statusIntervalMs(facts.latest?.status, policy), meanRate)
}

/** Asked for at every push and poll; a rhythm is learnt anew only now and then, a policy stays. */
const pricesForAll = new WeakMap<ScanRate, { readonly policy: CadencePolicy; readonly hours: number }>()

function priceForAll(scanRate: ScanRate, policy: CadencePolicy): number {
  const known = pricesForAll.get(scanRate)
  if (known?.policy === policy) return known.hours
  let checks = 0
  let density = 0
  for (const { status, hours, meanRate } of statusShares(scanRate)) {
    checks += (hours * HOUR_MS) / statusIntervalMs(status, policy)
    density += hours * Math.sqrt(meanRate)
  }
  const hours = (density / checks) ** 2 / 2
  pricesForAll.set(scanRate, { policy, hours })
  return hours
}

function priceOf(everyMs: number, meanRate: number): number {
  return (meanRate * (everyMs / HOUR_MS) ** 2) / 2
}

/**
 * The part of scans that only a poll can bring. An interval goes with the root of it, so a factor of f says that at most one in f * f is
 * lost; less, when less was seen to be.
 */
function hiddenPart({ pushHealth, pushLoss }: CadenceModel, { whenPushIsHealthy }: CadencePolicy): number {
  if (pushHealth !== 'healthy' || whenPushIsHealthy <= 1) return 1
  return Math.min(pushLoss, 1 / whenPushIsHealthy ** 2)
}

/**
 * What a check is worth at a time; decides who is asked about first when not all can be. What is likely to be unknown is worth the hours until
 * the parcel's turn would come again; what is likely to happen by then would be found at that turn and not now, and is taken off: it is better
 * to ask after a parcel's busy hours than before. Who has waited long goes before others all the same.
 */
export function pollValue(facts: CadenceFacts, model: CadenceModel, policy: CadencePolicy, nowMs: number): number {
  const { latest, checkedAtMs, watchedAtMs, activatedAtMs } = facts
  // After a delivery nothing is expected: what is not in doubt can wait until there is nothing else to ask.
  if (latest?.status === FINISHED && doubtOf(facts, model, policy) === 0) return Number.NEGATIVE_INFINITY
  const fromMs = Math.max(latest?.atMs ?? 0, checkedAtMs ?? latest?.atMs ?? watchedAtMs ?? activatedAtMs)
  const nowUnknown = unknownBy(facts, model, policy, fromMs, nowMs)
  const later = unknownBy(facts, model, policy, fromMs, nowMs + TURN_MS)
  const turnHours = TURN_MS / HOUR_MS
  return turnHours * (nowUnknown - (later - nowUnknown)) + LONG_WAIT_WEIGHT * nowUnknown * hoursBetween(fromMs, nowMs)
}

function unknownBy(facts: CadenceFacts, model: CadenceModel, policy: CadencePolicy, fromMs: number, atMs: number): number {
  const { latest, checkedAtMs, entryCount } = facts
  // A parcel that was put under watch and never asked about has an entry to be found; how it goes on from there is as with others.
  const unseen = latest === null && checkedAtMs === null ? 1 : 0
  const doubt = unseen + doubtOf(facts, model, policy)
  if (latest?.status === FINISHED) return doubt
  const hidden = hiddenPart(model, policy)
  const learnt = latest === null ? hourlyRatesAt(model.scanRate, 1) : hourlyRatesOf(model.scanRate, latest.status, entryCount)
  if (learnt === null) return doubt + hidden * UNSEEN_RATE * hoursBetween(fromMs, atMs)
  return expectedUnknownEntries({ fromMs, hourlyRates: learnt, hidden, doubt }, atMs)
}

function hoursBetween(fromMs: number, toMs: number): number {
  return Math.max(0, toMs - fromMs) / HOUR_MS
}

/**
 * How many entries before the latest one are likely to be missing: pushes were relied on since the last check, and of the scans that are usual
 * in that time some are lost; whether they are is to be seen from what came instead.
 */
function doubtOf({ latest, entryCount, checkedAtMs, watchedAtMs }: CadenceFacts, model: CadenceModel, policy: CadencePolicy): number {
  const sinceMs = checkedAtMs ?? watchedAtMs
  if (latest === null || sinceMs === null || latest.atMs <= sinceMs) return 0
  const all = statusShares(model.scanRate)
  const scans = all.reduce((sum, { hours, meanRate }) => sum + hours * meanRate, 0)
  const hours = all.reduce((sum, share) => sum + share.hours, 0)
  const lostExpected = (hiddenPart(model, policy) * (scans / hours) * (latest.atMs - sinceMs)) / HOUR_MS
  return missingBefore(model.scanRate, latest.status, entryCount, lostExpected)
}

/** The interval where nothing is learnt. */
function intervalMs(facts: CadenceFacts, { pushHealth }: CadenceModel, policy: CadencePolicy): number {
  return statusIntervalMs(facts.latest?.status, policy) * (pushHealth === 'healthy' ? policy.whenPushIsHealthy : 1)
}

function statusIntervalMs(status: string | undefined, { byStatusMs, defaultMs }: CadencePolicy): number {
  // The carrier's word is looked up: `constructor` must find nothing.
  return (status !== undefined && Object.hasOwn(byStatusMs, status) ? byStatusMs[status] : undefined) ?? defaultMs
}

/** The same parcel always gets the same share of the stagger: multiplied by the golden ratio, ids spread evenly over 0..1. */
function staggered(durationMs: number, parcelId: number): number {
  const spread = (parcelId * 0.618_033_988_749_895) % 1
  return Math.round(durationMs * (1 + STAGGER * spread))
}
