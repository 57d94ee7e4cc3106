import { type HourlyRates, hourOfWeek } from './scan-rate.ts'

const HOUR_MS = 3_600_000
const HOURS_OF_WEEK = 168

export interface PollTimeInput {
  /** When it was last certain that no scan had come since the latest one known: epoch milliseconds. */
  readonly fromMs: number
  readonly hourlyRates: HourlyRates
  /** What one call may cost: hours for which one entry stays unknown. */
  readonly priceHours: number
  /** The part of scans that only a poll can bring: 1 without pushes, the loss with them. */
  readonly hidden: number
  /** How many entries older than `fromMs` are likely to be there and not known. */
  readonly doubt: number
  /** No later than this, counted from `fromMs`. */
  readonly horizonMs: number
  /** The finest step worth looking at. */
  readonly stepMs: number
}

/** Two weeks hold all of a weekly rhythm twice; a sum over a longer wait tells nothing new, and this one is made for every push. */
const SUMMED_MS = 14 * 24 * HOUR_MS

/**
 * When to look next so that waiting longer would cost more than it saves. The inspection problem: a look costs `price`, an entry that is
 * there and not known costs its hours. Let a parcel be unscanned with chance S(t) at time t after the last certainty, h(t) the rate of scans,
 * and let its scan have been lost, with nothing heard since, with chance L(t): a lost scan is followed by others, whose pushes tell.
 *
 * - Waiting costs L an hour, for what nobody knows, and `doubt` an hour while nothing is heard, for what was lost before.
 * - Waiting saves S * sqrt(2 * price * hidden * h) an hour: what watching such a parcel costs at its best (looks at a density of
 *   sqrt(hidden * h / (2 * price)), Keller's solution), which need not be paid while it is not watched.
 *
 * The best time is where the balance, summed from the last certainty, is lowest. For scans without memory that is the interval at which
 * two checks cost what they save; before an hour in which scans come it is after most of them came; and when a push that should have come
 * has not, it is then, because with S small the silence itself says that a push was lost.
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
    // Steps grow with the wait: a sixteenth of it is precise enough, and keeps the sum short.
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
  // Still better to wait at the end of the sum: then for as long as may be.
  return bestMs === endMs ? fromMs + horizonMs : bestMs
}

/** By hour of the week: what every sum over an hourlyRates needs of each hour, and what would take most of its time. */
interface Factors {
  /** The chance that no scan comes in that hour. */
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

/** After so long a wait there is nothing finer to tell. */
const EXPECTED_OVER_MS = 5 * 24 * HOUR_MS

/**
 * How many entries are likely to be there and not known at a time, when nothing was heard since the last certainty: the next scan, if it came
 * and its push was lost, and what followed it.
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
