import { type HourlyRates, hourOfWeek } from './scan-rate.ts'

const HOUR_MS = 3_600_000
const HOURS_OF_WEEK = 168

export interface PollTimeInput {
  /** The last time, epoch milliseconds, at which the relay knew all scans of the parcel. */
  readonly fromMs: number
  readonly hourlyRates: HourlyRates
  /** The cost of one call: as much as knowing one entry this many hours earlier is worth. */
  readonly priceHours: number
  /** The share of scans that only a poll can reveal: 1 without pushes, otherwise the share of pushes that are lost. */
  readonly hidden: number
  /** The estimated number of entries before `fromMs` that the relay does not know. */
  readonly doubt: number
  /** How long after `fromMs` the poll may be at most. */
  readonly horizonMs: number
  /** The smallest step between two times that are tried. */
  readonly stepMs: number
}

/** The sum looks no further ahead than this, because it is made for every push. Two weeks hold every hour of the week twice. */
const SUMMED_MS = 14 * 24 * HOUR_MS

/**
 * Finds the best time of the next poll, epoch milliseconds: later, waiting costs more than it saves. This is the inspection problem. A poll
 * costs `priceHours`, and an entry costs the hours for which it stays unknown. At a time t after `fromMs`:
 *
 *   h   the rate of scans
 *   S   `unscanned`: the chance that the parcel was not scanned yet
 *   L   `lost`: the chance that it was scanned, that the push was lost, and that no push of a later scan has revealed it
 *
 * - Waiting costs, per hour, L for the unknown scan, and doubt * (S + L) for entries that were lost before, as long as no push comes.
 * - Waiting saves, per hour, S * sqrt(2 * price * hidden * h). This is the lowest cost of polling a parcel that was not scanned yet, at
 *   sqrt(hidden * h / (2 * price)) polls an hour (Keller's solution).
 *
 * The balance adds up costs minus savings since `fromMs`. The best time is where it is lowest.
 *
 * An example without pushes (hidden = 1) and without doubt, with 0.5 scans per hour and a price of 1 h: L = 1 - S, and waiting saves S per
 * hour. So waiting pays until S = 1/2, which is after ln 2 / 0.5 = 1.4 h. If scans cluster in an hour, the best time is after most of them. If
 * an expected push does not arrive, the best time is at once: S is small, so a lost push is likely.
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
    // Steps grow with the wait: a sixteenth of it is precise enough and keeps the sum short.
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
  // If waiting is still better at the end of the sum, wait as long as allowed.
  return bestMs === endMs ? fromMs + horizonMs : bestMs
}

/** Values for each hour of the week that every calculation needs. They are cached because they would take most of its time. */
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

/** The estimate hardly changes after such a long wait. */
const EXPECTED_OVER_MS = 5 * 24 * HOUR_MS

/**
 * Estimates how many entries exist and are unknown at `toMs`, if no push came since `fromMs`. These are the next scan, if it happened and
 * its push was lost, and the scans after it.
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
