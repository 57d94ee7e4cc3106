import { hourOfWeek, type WaitOutlook } from './rhythm.ts'

const HOUR_MS = 3_600_000

export interface LookQuestion {
  /** When it was last certain that no scan had come since the latest one known: epoch milliseconds. */
  readonly fromMs: number
  readonly outlook: WaitOutlook
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
export function nextLookMs({ fromMs, outlook, priceHours, hidden, doubt, horizonMs, stepMs }: LookQuestion): number {
  const endMs = fromMs + Math.min(horizonMs, SUMMED_MS)
  let unscanned = 1
  let lost = 0
  let balance = 0
  let best = { balance: 0, atMs: fromMs + stepMs }
  for (let atMs = fromMs; atMs < endMs; ) {
    const hour = hourOfWeek(atMs)
    const rate = outlook.rates[hour] ?? outlook.meanRate
    const hourEndMs = (Math.floor(atMs / HOUR_MS) + 1) * HOUR_MS
    // Steps grow with the wait: a sixteenth of it is precise enough, and keeps the sum short.
    const nextMs = Math.min(hourEndMs, endMs, atMs + Math.max(stepMs, (atMs - fromMs) / 16))
    const hours = (nextMs - atMs) / HOUR_MS
    const before = { unscanned, lost }
    unscanned *= Math.exp(-rate * hours)
    lost = lost * Math.exp(-(1 - hidden) * (outlook.followingRates[hour] ?? 0) * hours) + hidden * (before.unscanned - unscanned)
    const meanUnscanned = (before.unscanned + unscanned) / 2
    const meanLost = (before.lost + lost) / 2
    const saves = Math.sqrt(2 * priceHours * hidden * rate)
    balance += hours * (doubt * (meanUnscanned + meanLost) + meanLost - saves * meanUnscanned)
    if (balance < best.balance) best = { balance, atMs: nextMs }
    atMs = nextMs
    if (unscanned + lost < 1e-4) break
  }
  // Still better to wait at the end of the sum: then for as long as may be.
  return best.atMs === endMs ? fromMs + horizonMs : best.atMs
}

/** After so long a wait there is nothing finer to tell. */
const EXPECTED_OVER_MS = 5 * 24 * HOUR_MS

/**
 * How many entries are likely to be there and not known at a time, when nothing was heard since the last certainty: the next scan, if it came
 * and its push was lost, and what followed it.
 */
export function unknownAt(
  { fromMs, outlook, hidden, doubt }: Pick<LookQuestion, 'fromMs' | 'outlook' | 'hidden' | 'doubt'>,
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
    const following = (outlook.followingRates[hour] ?? 0) * hours
    const before = unscanned
    unscanned *= Math.exp(-(outlook.rates[hour] ?? outlook.meanRate) * hours)
    lost = lost * Math.exp(-(1 - hidden) * following) + hidden * (before - unscanned)
    followed += hidden * lost * following
    atMs = nextMs
  }
  return doubt + (lost + followed) / Math.max(unscanned + lost, 1e-9)
}
