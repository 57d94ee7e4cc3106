import type { ParcelState } from '../history/parcel-state.ts'
import { type HourlyRates, hourOfWeek } from './scan-rate.ts'

const HOUR_MS = 3_600_000
const HOURS_OF_WEEK = 168

export interface PollTimeInput {
  /** The relay knows all scans of the parcel before this time, except for those in `doubt`. Epoch milliseconds. */
  readonly fromMs: number
  readonly hourlyRates: HourlyRates
  /** The cost of one call. If it is 2, a call costs as much as one entry that stays unknown for 2 hours. */
  readonly priceHours: number
  /** The share of scans whose push does not arrive. If there are no pushes, it is 1. */
  readonly hidden: number
  /** The estimated number of entries before `fromMs` that the relay does not know. */
  readonly doubt: number
  /** The longest time from `fromMs` to the poll. */
  readonly horizonMs: number
  /** The shortest step from one time that is tried to the next. */
  readonly stepMs: number
}

/** How far `bestPollTimeMs` looks ahead at most. `bestPollTimeMs` must be fast, because it runs at every push. */
const SUMMED_MS = 14 * 24 * HOUR_MS

/**
 * Finds the best time of the next poll, epoch milliseconds (decision 0007). A poll costs `priceHours`. An entry costs the hours during which it
 * stays unknown. At a time t after `fromMs`:
 *
 *   h   the rate of scans per hour
 *   S   `unscanned`: the chance that the parcel was not scanned since `fromMs`
 *   L   `lost`: the chance that it was scanned, its push was lost, and no push of a later scan has arrived since
 *
 *   an hour of waiting costs  L + doubt * (S + L)                     S + L: the chance that no push has revealed the entries in doubt
 *   an hour of waiting saves  S * sqrt(2 * priceHours * hidden * h)   the lowest cost of polling a parcel without a new scan (Keller's solution)
 *
 * The balance is the sum of costs minus savings since `fromMs`. The best time is the one with the lowest balance.
 *
 * An example: hidden = 1, doubt = 0, h = 0.5 and priceHours = 1. An hour of waiting costs L = 1 - S and saves S. So waiting pays until S = 1/2,
 * which is after ln 2 / 0.5 = 1.4 h.
 */
export function bestPollTimeMs({ fromMs, hourlyRates, priceHours, hidden, doubt, horizonMs, stepMs }: PollTimeInput): number {
  const endMs = fromMs + Math.min(horizonMs, SUMMED_MS)
  const { unscannedAfter, rootOfRate } = factorsOf(hourlyRates)
  const savesPerRoot = Math.sqrt(2 * priceHours * hidden)
  let hour = hourOfWeek(fromMs)
  let hourEndMs = (Math.floor(fromMs / HOUR_MS) + 1) * HOUR_MS
  let unscanned = 1
  let lost = 0
  let balance = 0
  let bestBalance = 0
  let bestMs = fromMs + stepMs
  for (let atMs = fromMs; atMs < endMs; ) {
    // A step is a sixteenth of the wait so far. This is precise enough, and it keeps the number of steps small.
    const nextMs = Math.min(hourEndMs, endMs, atMs + Math.max(stepMs, (atMs - fromMs) / 16))
    const hours = (nextMs - atMs) / HOUR_MS
    const unscannedBefore = unscanned
    const lostBefore = lost
    unscanned *= hours === 1 ? (unscannedAfter[hour] ?? 1) : Math.exp(-(hourlyRates.rates[hour] ?? 0) * hours)
    if (lost > 0) lost *= Math.exp(-(1 - hidden) * (hourlyRates.followingRates[hour] ?? 0) * hours)
    lost += hidden * (unscannedBefore - unscanned)
    const meanUnscanned = (unscannedBefore + unscanned) / 2
    const meanLost = (lostBefore + lost) / 2
    balance += hours * (doubt * (meanUnscanned + meanLost) + meanLost - savesPerRoot * (rootOfRate[hour] ?? 0) * meanUnscanned)
    if (balance < bestBalance) {
      bestBalance = balance
      bestMs = nextMs
    }
    if (unscanned + lost < 1e-4) break
    if (nextMs === hourEndMs) {
      hour = (hour + 1) % HOURS_OF_WEEK
      hourEndMs += HOUR_MS
    }
    atMs = nextMs
  }
  // If the balance is lowest at the end, waiting pays as long as the function looks ahead. So wait as long as allowed.
  return bestMs === endMs ? fromMs + horizonMs : bestMs
}

/** Values for each hour of the week, cached because computing them takes long. */
interface Factors {
  /** The chance that an hour passes without a scan. */
  readonly unscannedAfter: Float64Array
  readonly rootOfRate: Float64Array
}

const factors = new WeakMap<HourlyRates, Factors>()

function factorsOf(hourlyRates: HourlyRates): Factors {
  const known = factors.get(hourlyRates)
  if (known !== undefined) return known
  const made = { unscannedAfter: hourlyRates.rates.map((rate) => Math.exp(-rate)), rootOfRate: hourlyRates.rates.map(Math.sqrt) }
  factors.set(hourlyRates, made)
  return made
}

/** The longest wait that `expectedUnknownEntries` looks at. After this time, the estimate hardly changes. */
const EXPECTED_OVER_MS = 5 * 24 * HOUR_MS

/**
 * Estimates how many entries the relay does not know at `toMs` if no push came since `fromMs`: the ones in `doubt`, the next scan if its
 * push was lost, and the scans after that one.
 */
export function expectedUnknownEntries(
  { fromMs, hourlyRates, hidden, doubt }: Pick<PollTimeInput, 'fromMs' | 'hourlyRates' | 'hidden' | 'doubt'>,
  toMs: number,
): number {
  const endMs = Math.min(toMs, fromMs + EXPECTED_OVER_MS)
  let unscanned = 1
  let lost = 0
  let followed = 0
  for (let atMs = fromMs; atMs < endMs; ) {
    const hour = hourOfWeek(atMs)
    const nextMs = Math.min(endMs, (Math.floor(atMs / HOUR_MS) + 1) * HOUR_MS)
    const hours = (nextMs - atMs) / HOUR_MS
    const following = (hourlyRates.followingRates[hour] ?? 0) * hours
    const before = unscanned
    unscanned *= Math.exp(-(hourlyRates.rates[hour] ?? hourlyRates.meanRate) * hours)
    lost = lost * Math.exp(-(1 - hidden) * following) + hidden * (before - unscanned)
    followed += hidden * lost * following
    atMs = nextMs
  }
  return doubt + (lost + followed) / Math.max(unscanned + lost, 1e-9)
}

/** Why the next poll of a parcel is due when it is. */
export type PollReason =
  /** Nothing is known about the parcel, and the carrier was never asked about it. */
  | { readonly kind: 'first' }
  /** The last polls failed. `failures`: how many in a row. */
  | { readonly kind: 'failed'; readonly failures: number; readonly retryMs: number }
  /**
   * The parcel is delivered, and this poll is due `afterMs` after the delivery. `more`: how many polls follow. `isRare`: pushes are reliable, so
   * some of these polls are left out.
   */
  | { readonly kind: 'closing'; readonly afterMs: number; readonly more: number; readonly isRare: boolean }
  /** The parcel is delivered, and a push or an app's question came since the last poll. */
  | { readonly kind: 'revived' }
  /** The interval of the status is over. `status` null: the parcel has no entry. `isRare`: the interval is longer, as pushes are reliable. */
  | { readonly kind: 'interval'; readonly status: string | null; readonly everyMs: number; readonly isRare: boolean }
  /** At this time the carrier has probably scanned the parcel. `everyMs`: the average interval between polls. */
  | { readonly kind: 'likely_scan'; readonly status: string; readonly everyMs: number; readonly isRare: boolean }

const STOPPED: Readonly<Record<NonNullable<ParcelState['stopped']>, string>> = {
  delivered: 'It is delivered, and all checks after that are done.',
  stale: 'Nothing new came for so long that it is not checked any more.',
  unknown: 'The carrier knows none of its identifiers.',
  unwatched: 'Somebody stopped watching it.',
}

export function describeStop(stopped: NonNullable<ParcelState['stopped']>): string {
  return STOPPED[stopped]
}

export const UNKNOWN_ASKED_AGAIN =
  'At the last check, the carrier knew none of its identifiers. Somebody has asked for it since, so it is checked again a day after that check.'

export const ASKED_TO_WAIT = 'The last check failed, and the carrier asked not to be asked again before this time (Retry-After).'

export const WAITS_FOR_CARRIER =
  'Calls to the carrier pause now: it is checked when the carrier answers again, at this time at the earliest.'

export function describePoll(reason: PollReason): string {
  switch (reason.kind) {
    case 'first':
      return 'Nothing is known of it yet: it is asked about soon, unless a push comes first.'
    case 'failed':
      return reason.failures === 1
        ? `The last check failed: it is tried again after ${length(reason.retryMs)}.`
        : `The last ${reason.failures} checks failed: it is tried again after ${length(reason.retryMs)}.`
    case 'closing':
      return describeClosing(reason)
    case 'revived':
      return 'It is delivered, and a push or a question came since the last check: one more check.'
    case 'interval':
      return `${reason.status ?? 'At the last check the carrier reported nothing about it'}: about every ${length(reason.everyMs)}${rare(reason)}.`
    case 'likely_scan':
      return `${reason.status}: at hours when the carrier usually scans parcels, on average about every ${length(reason.everyMs)}${rare(reason)}.`
  }
}

function describeClosing({ afterMs, more, isRare }: Extract<PollReason, { kind: 'closing' }>): string {
  const check =
    afterMs === 0 ? 'It is delivered: one check as soon as the relay knows it' : `It is delivered: the check ${length(afterMs)} after that`
  const rest = more === 0 ? 'the last one' : `${more} more will follow`
  return `${check}, ${rest}${isRare ? '. Pushes are reliable, so some checks of poll.finished.tail are left out' : ''}.`
}

function rare({ isRare }: { readonly isRare: boolean }): string {
  return isRare ? ', because pushes are reliable' : ''
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const

function length(ms: number): string {
  const [name, size] = UNITS.find(([, unitMs]) => ms >= unitMs) ?? (['s', 1000] as const)
  return `${Math.round((ms / size) * 10) / 10} ${name}`
}
