import { bestPollTimeMs, expectedUnknownEntries } from './best-poll-time.ts'
import { type CarrierSilence, noSilence, silentMs } from './carrier-silence.ts'
import type { PollReason } from './poll-reason.ts'
import type { PushHealth } from './push-health.ts'
import { hourlyRatesAt, hourlyRatesOf, missingBefore, type ScanRate, statusShares } from './scan-rate.ts'

/** How often to poll (CONTRACT `poll`); all durations in milliseconds. */
export interface CadencePolicy {
  /**
   * The interval between polls for each latest status. It also sets how much a poll may cost. What was learnt moves polls to better times,
   * but does not add any.
   */
  readonly byStatusMs: Readonly<Record<string, number>>
  readonly defaultMs: number
  /** While pushes are reliable, intervals are multiplied by at least this. 1: they stay as they are. */
  readonly whenPushIsHealthy: number
  /** Polls after delivery, counted from the delivery. */
  readonly tailMs: readonly number[]
  /** A parcel is no longer polled after this long without news. */
  readonly staleAfterMs: number
}

/** The facts about a parcel on which its next poll depends. Times are epoch milliseconds. */
export interface CadenceFacts {
  readonly parcelId: number
  /**
   * The newest entry; null: there is none. `atMs`: the time of the event, or when the relay learnt of it if that was earlier (DOMAIN 6.1).
   */
  readonly latest: { readonly status: string; readonly atMs: number } | null
  /** The number of its known entries. */
  readonly entryCount: number
  /** When polling for it began; null: it is not polled. */
  readonly watchedAtMs: number | null
  /** The last time that an app asked for it, an operator watched it, or a push reported it. Each of these reactivates it. */
  readonly activatedAtMs: number
  /** When it was last polled, successfully or not; null: never. */
  readonly checkedAtMs: number | null
  /** The number of failed polls since the last successful one. */
  readonly failures: number
  /** Whether the carrier knows none of its identifiers. */
  readonly unpollable: boolean
}

/** The learnt facts that apply to all parcels when a poll is scheduled. */
export interface CadenceModel {
  readonly pushHealth: PushHealth
  /** The share of pushes that are lost, apart from times when none arrive at all. */
  readonly pushLoss: number
  readonly scanRate: ScanRate
  /** When the carrier answered no call; absent: there was no such time. */
  readonly silence?: CarrierSilence
}

/** When to poll a parcel next, epoch milliseconds, or why not to. */
export type NextPoll =
  | { readonly kind: 'at'; readonly atMs: number; readonly why: PollReason }
  | { readonly kind: 'stopped'; readonly reason: 'delivered' | 'stale' | 'unknown' }

/** No other status follows this one. */
export const FINISHED = 'DeliverySucceeded'
/** A failed poll is repeated after one minute, then two, four and so on, but not later than the next regular poll. */
const RETRY_MS = 60_000
/** Parcels that arrive together should not be polled together, so their intervals differ by up to this share. */
const STAGGER = 0.1

/** Scans per hour of a parcel about which nothing has been learnt. */
const UNSEEN_RATE = 0.1
/** When calls are scarce, each parcel is polled about twice a day. */
const TURN_MS = 12 * 3_600_000
const LONG_WAIT_WEIGHT = 0.15
const FIRST_POLL_MS = 60_000
/** A poll follows the last one no sooner than this share of its interval, however likely a scan is. */
const SOONEST = 0.25
/** The learnt rates may be out of date, so a parcel is polled at least once a day, unless its interval is longer. */
const LATEST_MS = 24 * 3_600_000
const HOUR_MS = 3_600_000
const STEP_MAX_MS = HOUR_MS / 4

/** When to poll a parcel next (DOMAIN 6.1). A time in the past means now. */
export function nextPoll(facts: CadenceFacts, model: CadenceModel, policy: CadencePolicy): NextPoll {
  if (facts.unpollable) return { kind: 'stopped', reason: 'unknown' }
  if (facts.failures > 0 && facts.checkedAtMs !== null) {
    const retryMs = Math.min(RETRY_MS * 2 ** Math.min(facts.failures - 1, 20), intervalMs(facts, model, policy))
    const why = { kind: 'failed', failures: facts.failures, retryMs } as const
    return unlessStale(facts, model, policy, { atMs: facts.checkedAtMs + staggered(retryMs, facts.parcelId), why })
  }
  return facts.latest?.status === FINISHED ? closingPoll(facts, facts.latest.atMs, model, policy) : regularPoll(facts, model, policy)
}

/**
 * Plans the polls of a delivered parcel: one as soon as the delivery is known, then the tail, then none. A push or an app's question since
 * the last poll adds one more. The carrier may report details of a delivery later, and people keep asking about delivered parcels.
 */
function closingPoll(facts: CadenceFacts, deliveredAtMs: number, model: CadenceModel, policy: CadencePolicy): NextPoll {
  const { checkedAtMs, activatedAtMs, parcelId } = facts
  const all = closingMs(model, policy)
  const closing = all
    .map((afterMs) => ({ afterMs, atMs: deliveredAtMs + staggered(afterMs, parcelId) }))
    .filter(({ atMs }) => atMs > (checkedAtMs ?? Number.NEGATIVE_INFINITY))
  const next = closing[0]?.atMs
  const isRare = all.length < policy.tailMs.length
  const why = { kind: 'closing', afterMs: closing[0]?.afterMs ?? 0, more: closing.length - 1, isRare } as const
  if (checkedAtMs === null || activatedAtMs <= checkedAtMs || (next !== undefined && model.pushHealth === 'healthy')) {
    return next === undefined ? { kind: 'stopped', reason: 'delivered' } : { kind: 'at', atMs: next, why }
  }
  const revivalMs = Math.max(activatedAtMs, checkedAtMs + staggered(intervalMs(facts, model, policy), parcelId))
  return next !== undefined && next < revivalMs
    ? { kind: 'at', atMs: next, why }
    : { kind: 'at', atMs: revivalMs, why: { kind: 'revived' } }
}

/**
 * The times of the polls after delivery, counted from it. While pushes are healthy, they cover the time between the first and the last of
 * these polls, so only those two remain.
 */
function closingMs({ pushHealth }: CadenceModel, { tailMs, whenPushIsHealthy }: CadencePolicy): readonly number[] {
  if (pushHealth !== 'healthy' || whenPushIsHealthy <= 1 || tailMs.length === 0) return [0, ...tailMs]
  return [...new Set([...tailMs.slice(0, 1), ...tailMs.slice(-1)])]
}

function regularPoll(facts: CadenceFacts, model: CadenceModel, policy: CadencePolicy): NextPoll {
  return unlessStale(facts, model, policy, planned(facts, model, policy))
}

/** A poll at `atMs`, or none if the parcel has been without news for too long then. Failed polls bring no news either. */
function unlessStale(
  facts: CadenceFacts,
  { silence = noSilence }: CadenceModel,
  { staleAfterMs }: CadencePolicy,
  { atMs, why }: Planned,
): NextPoll {
  const { latest } = facts
  const newestMs = Math.max(latest?.atMs ?? Number.NEGATIVE_INFINITY, facts.activatedAtMs)
  const withoutNewsMs = atMs - newestMs
  if (withoutNewsMs <= staleAfterMs || withoutNewsMs - silentMs(silence, newestMs, atMs) <= staleAfterMs) return { kind: 'at', atMs, why }
  if (latest === null) return { kind: 'stopped', reason: 'unknown' }
  return { kind: 'stopped', reason: latest.status === FINISHED ? 'delivered' : 'stale' }
}

interface Planned {
  readonly atMs: number
  readonly why: PollReason
}

function planned(facts: CadenceFacts, model: CadenceModel, policy: CadencePolicy): Planned {
  const { latest, checkedAtMs, parcelId } = facts
  // Nothing is known, and the parcel was never polled. A push may be on its way, so wait a little for it.
  if (latest === null && checkedAtMs === null)
    return { atMs: facts.activatedAtMs + Math.min(FIRST_POLL_MS, statusIntervalMs(undefined, policy)), why: { kind: 'first' } }
  const everyMs = intervalMs(facts, model, policy)
  const isRare = model.pushHealth === 'healthy' && policy.whenPushIsHealthy > 1
  const learnt = latest === null ? null : hourlyRatesOf(model.scanRate, latest.status, facts.entryCount)
  const fullMs = statusIntervalMs(latest?.status, policy)
  if (latest === null || learnt === null) {
    const atMs = (checkedAtMs ?? facts.activatedAtMs) + staggered(everyMs, parcelId)
    return { atMs, why: { kind: 'interval', status: latest?.status ?? null, everyMs, isRare } }
  }

  const certainMs = Math.max(latest.atMs, checkedAtMs ?? latest.atMs)
  const latestMs = Math.max(LATEST_MS, everyMs)
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
  const atMs = Math.max(certainMs + staggered(waitMs, parcelId), (checkedAtMs ?? 0) + 1)
  return { atMs, why: { kind: 'likely_scan', status: latest.status, everyMs, isRare } }
}

/**
 * How many hours of not knowing one entry a poll is worth. The operator sets this through the interval of a status: at the mean scan rate,
 * exactly that interval pays (`priceOf`). While pushes are healthy, polls only look for lost pushes, and these matter equally in every
 * status. Then all parcels have the same price. It is chosen so that the total number of polls stays the same (`priceForAll`).
 */
function priceHours(facts: CadenceFacts, meanRate: number, model: CadenceModel, policy: CadencePolicy): number {
  return model.pushHealth === 'healthy'
    ? priceForAll(model.scanRate, policy)
    : priceOf(statusIntervalMs(facts.latest?.status, policy), meanRate)
}

/** Every push and poll needs the price, but the scan rate changes rarely and the policy never. */
const pricesForAll = new WeakMap<ScanRate, { readonly policy: CadencePolicy; readonly hours: number }>()

/**
 * Finds the price for all. At a price, polls pay every sqrt(2 * price / rate) hours (`priceOf`), so all parcels together get sum(hours *
 * sqrt(rate)) / sqrt(2 * price) polls. With their intervals they get sum(hours / interval) polls. The price is the one at which both sums
 * are equal.
 */
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

/**
 * price = rate * interval² / 2. In one interval rate * interval entries happen, and each stays unknown for half of it on average. With 0.1
 * scans per hour and an interval of 2 h, a poll may cost 0.1 * 4 / 2 = 0.2 h.
 */
function priceOf(everyMs: number, meanRate: number): number {
  return (meanRate * (everyMs / HOUR_MS) ** 2) / 2
}

/**
 * The share of scans that only a poll can reveal. An interval grows with the square root of this share. So a factor f means that one push
 * in f * f is lost, or fewer if the relay has seen fewer losses.
 */
function hiddenPart({ pushHealth, pushLoss }: CadenceModel, { whenPushIsHealthy }: CadencePolicy): number {
  if (pushHealth !== 'healthy' || whenPushIsHealthy <= 1) return 1
  return Math.min(pushLoss, 1 / whenPushIsHealthy ** 2)
}

/**
 * The value of polling a parcel at `nowMs`. It ranks parcels when there are too few calls for all.
 *
 * An entry that is likely to be unknown adds value for each hour until the parcel's next turn. An entry that is likely to happen before
 * that turn takes value away, because the turn would find it and a poll now would not. So a poll after a parcel's busy hours is worth more
 * than one before them. A long wait adds value.
 */
export function pollValue(facts: CadenceFacts, model: CadenceModel, policy: CadencePolicy, nowMs: number): number {
  const { latest, checkedAtMs, watchedAtMs, activatedAtMs } = facts
  // After delivery nothing more is expected. Unless entries may be missing, this poll can wait for all others.
  if (latest?.status === FINISHED && doubtOf(facts, model, policy) === 0) return Number.NEGATIVE_INFINITY
  const fromMs = Math.max(latest?.atMs ?? 0, checkedAtMs ?? latest?.atMs ?? watchedAtMs ?? activatedAtMs)
  const nowUnknown = unknownBy(facts, model, policy, fromMs, nowMs)
  const later = unknownBy(facts, model, policy, fromMs, nowMs + TURN_MS)
  const turnHours = TURN_MS / HOUR_MS
  return turnHours * (nowUnknown - (later - nowUnknown)) + LONG_WAIT_WEIGHT * nowUnknown * hoursBetween(fromMs, nowMs)
}

function unknownBy(facts: CadenceFacts, model: CadenceModel, policy: CadencePolicy, fromMs: number, atMs: number): number {
  const { latest, checkedAtMs, entryCount } = facts
  // A watched parcel that was never polled counts as one unknown entry. Later it is like any other.
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
 * Estimates how many entries before the latest one are missing. Since the last poll the relay has relied on pushes, some of which are lost.
 * The number of pushes that arrived shows how many.
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

/** The interval for a parcel about which nothing has been learnt. */
function intervalMs(facts: CadenceFacts, { pushHealth }: CadenceModel, policy: CadencePolicy): number {
  return statusIntervalMs(facts.latest?.status, policy) * (pushHealth === 'healthy' ? policy.whenPushIsHealthy : 1)
}

function statusIntervalMs(status: string | undefined, { byStatusMs, defaultMs }: CadencePolicy): number {
  // The status comes from the carrier, so it may be `constructor`, which must find nothing.
  return (status !== undefined && Object.hasOwn(byStatusMs, status) ? byStatusMs[status] : undefined) ?? defaultMs
}

/** Delays the polls of a parcel by its own share of the stagger. Multiplying ids by the golden ratio spreads them evenly over 0..1. */
function staggered(durationMs: number, parcelId: number): number {
  const spread = (parcelId * 0.618_033_988_749_895) % 1
  return Math.round(durationMs * (1 + STAGGER * spread))
}
