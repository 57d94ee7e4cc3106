import { z } from 'zod'
import { notAhead } from '../instant.ts'
import { parseStoredAs } from '../json-body.ts'
import { bestPollTimeMs, expectedUnknownEntries, type PollReason } from './best-poll-time.ts'
import type { PushHealth } from './push-health.ts'
import { FINISHED, hourlyRatesAt, hourlyRatesOf, missingBefore, type ScanRate, statusShares } from './scan-rate.ts'

/** How often to poll (CONTRACT `poll`). */
export interface CadencePolicy {
  /** The interval between polls, by the parcel's latest status. The learnt scan rates move polls to better times, but do not make more of them. */
  readonly byStatusMs: Readonly<Record<string, number>>
  readonly defaultMs: number
  /** While pushes are reliable, intervals are multiplied by at least this factor. 1: intervals stay as they are. */
  readonly whenPushIsHealthy: number
  /** When to poll after delivery, counted from the time of the delivery. */
  readonly tailMs: readonly number[]
  /** A parcel is no longer polled if it has had no news for this long. */
  readonly staleAfterMs: number
}

/** The data about a parcel on which its next poll depends. Times are epoch milliseconds. */
export interface CadenceFacts {
  readonly parcelId: number
  /** The newest entry; null: none. `atMs`: the time of the event or, if earlier, when the relay learnt of it (DOMAIN 6.1). */
  readonly latest: { readonly status: string; readonly atMs: number } | null
  readonly entryCount: number
  /** When the relay began to watch (poll) the parcel; null: the parcel is not watched. */
  readonly watchedAtMs: number | null
  /** When an app last asked for the parcel, an operator watched it, or a push about it came. This starts polling again if it had ended. */
  readonly activatedAtMs: number
  /** When the parcel was last polled, successfully or not; null: never. */
  readonly checkedAtMs: number | null
  /** The number of failed polls since the last successful one. */
  readonly failures: number
  /** Whether the carrier knows none of the parcel's identifiers. */
  readonly unpollable: boolean
}

/** What was learnt about the carrier. */
export interface CadenceModel {
  readonly pushHealth: PushHealth
  /** The share of pushes that are lost. Times at which no push arrived at all are not counted. */
  readonly pushLoss: number
  readonly scanRate: ScanRate
  /** The times during which the carrier answered no call; absent: no such times. */
  readonly silence?: CarrierSilence
  /** Whether our clock may be wrong. Then no parcel becomes stale, because polling would end for good. */
  readonly isClockDoubted?: boolean
}

export type NextPoll =
  | { readonly kind: 'at'; readonly atMs: number; readonly why: PollReason }
  | { readonly kind: 'stopped'; readonly reason: 'delivered' | 'stale' | 'unknown' }

/** A failed poll is repeated after one minute, then after two, four and so on, but not later than the next regular poll. */
const RETRY_MS = 60_000
/** Intervals are longer by up to this share, so that parcels that arrive at the same time are not all polled at the same time. */
const STAGGER = 0.1

/** Scans per hour of a parcel about which nothing has been learnt. */
const UNSEEN_RATE = 0.1
/** If there are too few calls for all parcels, a parcel's next turn is assumed to come after this time. */
const TURN_MS = 12 * 3_600_000
const LONG_WAIT_WEIGHT = 0.15
const FIRST_POLL_MS = 60_000
/** However likely a scan is, the time between two polls is at least this share of the interval. */
const SOONEST = 0.25
/** The learnt rates may be out of date. So a parcel is polled at least once a day, unless its interval is longer. */
const LATEST_MS = 24 * 3_600_000
const HOUR_MS = 3_600_000
const STEP_MAX_MS = HOUR_MS / 4

/** Decides when to poll a parcel next (DOMAIN 6.1). A time in the past means now. */
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
 * Plans the polls of a delivered parcel: one as soon as the delivery is known, and then those of `tailMs`. If a push or an app's question
 * comes after the last poll, there is one more poll, because the carrier may report details of a delivery later.
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

/** While pushes are healthy, only the first and the last poll of `tailMs` are made, because pushes report what happens in between. */
function closingMs({ pushHealth }: CadenceModel, { tailMs, whenPushIsHealthy }: CadencePolicy): readonly number[] {
  if (pushHealth !== 'healthy' || whenPushIsHealthy <= 1 || tailMs.length === 0) return [0, ...tailMs]
  return [...new Set([...tailMs.slice(0, 1), ...tailMs.slice(-1)])]
}

function regularPoll(facts: CadenceFacts, model: CadenceModel, policy: CadencePolicy): NextPoll {
  return unlessStale(facts, model, policy, planned(facts, model, policy))
}

/**
 * Returns a poll at `atMs`, or no poll if the parcel is stale by then (`staleAfterMs`). Time in which the carrier was silent does not count. A doubted clock
 * makes nothing stale.
 */
function unlessStale(
  facts: CadenceFacts,
  { silence = noSilence, isClockDoubted = false }: CadenceModel,
  { staleAfterMs }: CadencePolicy,
  { atMs, why }: Planned,
): NextPoll {
  const { latest } = facts
  const newestMs = Math.max(latest?.atMs ?? Number.NEGATIVE_INFINITY, facts.activatedAtMs)
  const withoutNewsMs = atMs - newestMs
  if (isClockDoubted || withoutNewsMs <= staleAfterMs || withoutNewsMs - silentMs(silence, newestMs, atMs) <= staleAfterMs)
    return { kind: 'at', atMs, why }
  if (latest === null) return { kind: 'stopped', reason: 'unknown' }
  return { kind: 'stopped', reason: latest.status === FINISHED ? 'delivered' : 'stale' }
}

interface Planned {
  readonly atMs: number
  readonly why: PollReason
}

function planned(facts: CadenceFacts, model: CadenceModel, policy: CadencePolicy): Planned {
  const { latest, checkedAtMs, parcelId } = facts
  // Nothing is known about the parcel, and it was never polled. Wait a little, because a push about it may be on its way.
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
 * Returns the price of a poll, in hours (decision 0007). With a price of 2, a poll is worth making if the relay learns of one entry two hours
 * sooner. The price is chosen so that polls are as frequent as the operator has set for the status, if the parcel is scanned at the mean rate.
 *
 * While pushes are healthy, polls only look for lost pushes, which matter equally in every status. Then all parcels have the same price.
 */
function priceHours(facts: CadenceFacts, meanRate: number, model: CadenceModel, policy: CadencePolicy): number {
  return model.pushHealth === 'healthy'
    ? priceForAll(model.scanRate, policy)
    : priceOf(statusIntervalMs(facts.latest?.status, policy), meanRate)
}

/** The prices are cached, because every push and poll needs one. The scan rate changes rarely, and the policy never. */
const pricesForAll = new WeakMap<ScanRate, { readonly policy: CadencePolicy; readonly hours: number }>()

/**
 * Finds the price that all parcels share. With this price, all parcels together get as many polls as with the intervals of their statuses.
 * By `priceOf`, the interval for a price is sqrt(2 * price / rate) hours. In the sums, `hours` is the time that parcels spend in a status.
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
 * Returns the price at which an interval is the best one: rate * interval² / 2. In one interval, rate * interval entries happen, and on average
 * each stays unknown for half the interval. With 0.1 scans per hour and an interval of 2 h, a poll may cost 0.1 * 4 / 2 = 0.2 h.
 */
function priceOf(everyMs: number, meanRate: number): number {
  return (meanRate * (everyMs / HOUR_MS) ** 2) / 2
}

/**
 * Returns the share of scans whose push does not arrive: the share that the relay has seen, but at most 1 / `whenPushIsHealthy`². With that
 * share, the best interval is `whenPushIsHealthy` times as long as without pushes, which is what the operator has set.
 */
function hiddenPart({ pushHealth, pushLoss }: CadenceModel, { whenPushIsHealthy }: CadencePolicy): number {
  if (pushHealth !== 'healthy' || whenPushIsHealthy <= 1) return 1
  return Math.min(pushLoss, 1 / whenPushIsHealthy ** 2)
}

/**
 * Returns the value of polling a parcel at `nowMs`. It ranks parcels if there are too few calls for all of them.
 *
 * A poll now finds the entries that exist by now, but not those of the time until the parcel's next turn (`TURN_MS`). So each entry that is
 * expected by now raises the value, and each entry expected in that time lowers it: a poll after a parcel's busy hours is worth more than a
 * poll before them. A long wait raises the value too.
 */
export function pollValue(facts: CadenceFacts, model: CadenceModel, policy: CadencePolicy, nowMs: number): number {
  const { latest, checkedAtMs, watchedAtMs, activatedAtMs } = facts
  // After delivery no more entries are expected. So if no earlier entry is missing either, the parcel comes after all others.
  if (latest?.status === FINISHED && doubtOf(facts, model, policy) === 0) return Number.NEGATIVE_INFINITY
  const fromMs = Math.max(latest?.atMs ?? 0, checkedAtMs ?? latest?.atMs ?? watchedAtMs ?? activatedAtMs)
  const nowUnknown = unknownBy(facts, model, policy, fromMs, nowMs)
  const later = unknownBy(facts, model, policy, fromMs, nowMs + TURN_MS)
  const turnHours = TURN_MS / HOUR_MS
  return turnHours * (nowUnknown - (later - nowUnknown)) + LONG_WAIT_WEIGHT * nowUnknown * hoursBetween(fromMs, nowMs)
}

function unknownBy(facts: CadenceFacts, model: CadenceModel, policy: CadencePolicy, fromMs: number, atMs: number): number {
  const { latest, checkedAtMs, entryCount } = facts
  // A watched parcel without entries that was never polled counts as having one unknown entry, so that it is polled early.
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
 * Estimates how many entries before the latest one are missing. Since the last poll the relay has only had pushes, some of which may be
 * lost. If the relay knows as many entries as parcels usually have at the latest status, few are missing.
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

/** Returns the configured interval. Learnt scan rates do not change it. */
function intervalMs(facts: CadenceFacts, { pushHealth }: CadenceModel, policy: CadencePolicy): number {
  return statusIntervalMs(facts.latest?.status, policy) * (pushHealth === 'healthy' ? policy.whenPushIsHealthy : 1)
}

function statusIntervalMs(status: string | undefined, { byStatusMs, defaultMs }: CadencePolicy): number {
  // The carrier chooses the status. So `hasOwn` keeps a status such as `constructor` from finding an inherited property.
  return (status !== undefined && Object.hasOwn(byStatusMs, status) ? byStatusMs[status] : undefined) ?? defaultMs
}

/** Makes a duration up to `STAGGER` longer, by a share that depends on the parcel. The golden ratio spreads these shares evenly. */
function staggered(durationMs: number, parcelId: number): number {
  const spread = (parcelId * 0.618_033_988_749_895) % 1
  return Math.round(durationMs * (1 + STAGGER * spread))
}

/**
 * The times during which the carrier answered no call. A silence lasts from an unanswered poll to the next answered one. It does not count toward
 * the time after which a parcel is stale (DOMAIN 6.1). Otherwise a long outage would make all parcels stale. Times are epoch milliseconds.
 */
export interface CarrierSilence {
  /** Null: the last poll was answered. */
  readonly sinceMs: number | null
  /** Oldest first. */
  readonly past: readonly { readonly fromMs: number; readonly toMs: number }[]
}

export const noSilence: CarrierSilence = { sinceMs: null, past: [] }

/** Shorter silences are not kept: a parcel is stale only after days, so they hardly matter. */
const LEAST_MS = 3_600_000
const PAST_MAX = 100

export function afterAnswer(silence: CarrierSilence, atMs: number): CarrierSilence {
  const { sinceMs, past } = silence
  if (sinceMs === null) return silence
  if (atMs - sinceMs < LEAST_MS) return { sinceMs: null, past }
  return { sinceMs: null, past: [...past, { fromMs: sinceMs, toMs: atMs }].slice(-PAST_MAX) }
}

export function afterNoAnswer(silence: CarrierSilence, atMs: number): CarrierSilence {
  return silence.sinceMs === null ? { ...silence, sinceMs: atMs } : silence
}

/** Removes the part of a silence that is in the future after the clock was put back. */
export function clampSilenceToClock(silence: CarrierSilence, nowMs: number): CarrierSilence {
  const { sinceMs, past } = silence
  if ((sinceMs ?? nowMs) <= nowMs && past.every(({ toMs }) => toMs <= nowMs)) return silence
  return {
    sinceMs: notAhead(sinceMs, nowMs),
    past: past.filter(({ fromMs }) => fromMs < nowMs).map(({ fromMs, toMs }) => ({ fromMs, toMs: notAhead(toMs, nowMs) })),
  }
}

/** Returns how much of the time from `fromMs` to `toMs` was silence. A silence that has not ended counts up to `toMs`. */
export function silentMs({ sinceMs, past }: CarrierSilence, fromMs: number, toMs: number): number {
  const all = sinceMs === null ? past : [...past, { fromMs: sinceMs, toMs }]
  return all.reduce((sum, one) => sum + Math.max(0, Math.min(one.toMs, toMs) - Math.max(one.fromMs, fromMs)), 0)
}

const record = z.object({
  sinceMs: z.number().nullable(),
  past: z.array(z.object({ fromMs: z.number(), toMs: z.number() })).max(PAST_MAX),
})

/** Leaves out a silence that has only just begun. */
export function encodeSilence({ sinceMs, past }: CarrierSilence, nowMs: number): string {
  return JSON.stringify({ sinceMs: sinceMs !== null && nowMs - sinceMs >= LEAST_MS ? sinceMs : null, past })
}

/** Null: the text is damaged. */
export function parseSilence(text: string): CarrierSilence | null {
  return parseStoredAs(record, text)
}
