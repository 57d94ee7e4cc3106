import { type HourlyRates, hourOfWeek } from './scan-rate.ts'

const HOUR_MS = 3_600_000
const HOURS_OF_WEEK = 168

export interface PollTimeInput {
  /** When it was last certain that no scan followed the latest known one, epoch milliseconds. */
  readonly fromMs: number
  readonly hourlyRates: HourlyRates
  /** The price of one call, expressed as the hours for which one entry stays unknown. */
  readonly priceHours: number
  /** The share of scans that only a poll can reveal: 1 without pushes, else the share of lost pushes. */
  readonly hidden: number
  /** How many entries before `fromMs` are likely to be missing. */
  readonly doubt: number
  /** The latest time, counted from `fromMs`. */
  readonly horizonMs: number
  /** The finest step of the sum. */
  readonly stepMs: number
}

/** Two weeks cover a weekly rhythm twice. Summing further adds nothing, and this runs for every push. */
const SUMMED_MS = 14 * 24 * HOUR_MS

/**
 * The time of the next poll at which waiting longer would cost more than it saves, epoch milliseconds. This is the inspection problem: a
 * poll costs `priceHours`, and an entry costs the hours for which it stays unknown. At the time t after the last certainty (`fromMs`):
 *
 *   h   the rate of scans
 *   S   `unscanned`: the chance that the parcel was not scanned yet
 *   L   `lost`: the chance that it was scanned, that the push was lost, and that no push of a later scan has revealed it
 *
 * - Waiting costs, per hour, L for the scan that is unknown, and doubt * (S + L) for entries that were lost before, while no push comes.
 * - Waiting saves, per hour, S * sqrt(2 * price * hidden * h): the lowest cost of polling a parcel that was not scanned yet (polls at a
 *   density of sqrt(hidden * h / (2 * price)), Keller's solution).
 *
 * The best time is where the balance, costs minus savings summed from the last certainty, is lowest. For example, without pushes
 * (hidden = 1), without doubt, at a constant 0.5 scans per hour and a price of 1 h: L = 1 - S, and waiting saves S per hour, so it pays until
 * S = 1/2, which is after ln 2 / 0.5 = 1.4 h. If scans cluster in an hour, the best time is after most of them. If an expected push does not
 * arrive, the best time is right then, because with S small the silence itself suggests a lost push.
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

/** Factors that every sum needs for each hour of the week. They are computed once because they would take most of the time. */
interface Factors {
  /** The chance that no scan happens in that hour. */
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

/** After such a long wait the chances hardly change any more. */
const EXPECTED_OVER_MS = 5 * 24 * HOUR_MS

/**
 * How many entries are likely to exist and be unknown at `toMs`, if no push came since the last certainty: the next scan, if it
 * happened and its push was lost, and the scans after it.
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
