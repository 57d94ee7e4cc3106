const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** How long a tally counts: an hour, or a day in UTC. */
export type TallySpan = 'hour' | 'day'

export const SPANS: readonly TallySpan[] = ['hour', 'day']
const SPAN_MS: Readonly<Record<TallySpan, number>> = { hour: HOUR_MS, day: DAY_MS }

/**
 * How many hours and days are kept: a week of hours and the present day, and a year of days and the present month. Operator events and the
 * audit trail are kept for as many days.
 */
export const SPANS_KEPT: Readonly<Record<TallySpan, number>> = { hour: 8 * 24, day: 400 }

/**
 * The time before which hours or days may be deleted. Age alone does not decide: if the clock is set ahead by mistake, everything looks
 * old. So as many hours or days as are kept must also have been counted since.
 *
 * @param countedFromMs among the newest `SPANS_KEPT` hours or days with counts, the beginning of the oldest; null: there are fewer
 */
export function keptFrom(span: TallySpan, nowMs: number, countedFromMs: number | null): number {
  return countedFromMs === null ? 0 : Math.min(nowMs - SPANS_KEPT[span] * SPAN_MS[span], countedFromMs)
}

/**
 * The kinds of counts. `pushes`: received pushes by outcome. `missed`: missed pushes, by how long after the event the poll found them.
 * `polls`: polls by outcome. `attempts`: attempts at all endpoints. `calls`: calls to the carrier, by who makes them. `disk`: the lowest
 * number of free bytes. `endpoint:ID`: attempts at one endpoint.
 */
export type TallyKind = 'pushes' | 'missed' | 'polls' | 'attempts' | 'calls' | 'disk' | `endpoint:${string}`

const KIND = /^(?:pushes|missed|polls|attempts|calls|disk|endpoint:\d{1,15})$/

/** Parses the name of a kind; null: it is not one. */
export function readTallyKind(text: string): TallyKind | null {
  return isKind(text) ? text : null
}

function isKind(text: string): text is TallyKind {
  return KIND.test(text)
}

export type Counts = Readonly<Record<string, number>>

/** The counts of one hour or day. */
export interface Tally {
  /** When the hour or the day begins, epoch milliseconds. */
  readonly fromMs: number
  readonly counts: Counts
}

/** Counts of one hour, to be added to the stored ones. */
export interface TallyAddition extends Tally {
  readonly kind: TallyKind
}

/** The counts that a process adds at once. It sends them again under the same number until it knows that they are stored. */
export interface TallyFlush {
  /** A name of the process that no other process ever has. */
  readonly by: string
  readonly number: number
  readonly additions: readonly TallyAddition[]
}

/** When the hour or the day of a moment begins. */
export function spanStart(span: TallySpan, atMs: number): number {
  return Math.floor(atMs / SPAN_MS[span]) * SPAN_MS[span]
}

/** The limits of the classes of lateness, in milliseconds, with their names. A push after the last limit is `later`. */
const LATENESS: readonly (readonly [limitMs: number, name: string])[] = [
  [60_000, '1m'],
  [5 * 60_000, '5m'],
  [15 * 60_000, '15m'],
  [HOUR_MS, '1h'],
  [4 * HOUR_MS, '4h'],
  [DAY_MS, '1d'],
]

/** The names of the classes of lateness, from soon to late. */
export const LATENESS_CLASSES: readonly string[] = [...LATENESS.map(([, name]) => name), 'later']

/** The class of a missed push, by the time from its event to the poll that found it. */
export function latenessClass(latencyMs: number): string {
  return LATENESS.find(([limitMs]) => latencyMs <= limitMs)?.[1] ?? 'later'
}

/**
 * Who makes a call to the carrier. `language`: to fetch texts that entries lacked. `repeat`: to ask the same again, after a failure or a
 * refused token.
 */
export type CallSpender = 'schedule' | 'language' | 'operator' | 'token' | 'repeat' | `app:${string}`

/** The tallies of `length` hours or days, up to the one that begins at `last`. If one is not stored, its counts are zero. */
export function seriesOf(
  stored: readonly Tally[],
  { span, last, length }: { readonly span: TallySpan; readonly last: number; readonly length: number },
): readonly Tally[] {
  const known = new Map(stored.map((tally) => [tally.fromMs, tally]))
  return Array.from({ length }, (_, at) => {
    const fromMs = last - (length - 1 - at) * SPAN_MS[span]
    return known.get(fromMs) ?? { fromMs, counts: {} }
  })
}

/** The sum of counts, of all names or of some. */
export function totalOf(counts: Counts, names: readonly string[] = Object.keys(counts)): number {
  return names.reduce((sum, name) => sum + (counts[name] ?? 0), 0)
}

export function sumOf(tallies: readonly Pick<Tally, 'counts'>[]): Counts {
  const sum: Record<string, number> = {}
  for (const { counts } of tallies) for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count
  return sum
}
