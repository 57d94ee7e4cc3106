const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** A tally covers an hour, or a day in UTC. */
export type TallySpan = 'hour' | 'day'

export const SPANS: readonly TallySpan[] = ['hour', 'day']
const SPAN_MS: Readonly<Record<TallySpan, number>> = { hour: HOUR_MS, day: DAY_MS }

/** How many tallies are kept: hours for a week and the present day, days for somewhat more than a year. */
export const SPANS_KEPT: Readonly<Record<TallySpan, number>> = { hour: 8 * 24, day: 400 }

/**
 * Returns the time before which tallies may be deleted. Keeps the last 192 hours (400 days), and the newest 192 hours (400 days) that have counts.
 * The second rule keeps tallies if a clock is set ahead by mistake, so that all of them look old.
 *
 * @param countedFromMs when the earliest of these newest hours or days begins; null: fewer have counts, so nothing may be deleted
 */
export function keptFrom(span: TallySpan, nowMs: number, countedFromMs: number | null): number {
  return countedFromMs === null ? 0 : Math.min(nowMs - SPANS_KEPT[span] * SPAN_MS[span], countedFromMs)
}

/**
 * What a tally counts. `pushes`: received pushes by outcome. `missed`: missed pushes by `latenessClass`. `polls`: polls by outcome. `attempts`:
 * attempts at all endpoints. `served`: answers to apps by source, without `hit`, which needs no carrier. `endpoint:ID`: attempts at one endpoint. `calls`: calls to the carrier by `CallSpender`. `disk`: the lowest number
 * of free bytes.
 */
export type TallyKind = 'pushes' | 'missed' | 'polls' | 'attempts' | 'calls' | 'served' | 'disk' | `endpoint:${string}`

const KIND = /^(?:pushes|missed|polls|attempts|calls|served|disk|endpoint:\d{1,15})$/

export function readTallyKind(text: string): TallyKind | null {
  return isKind(text) ? text : null
}

function isKind(text: string): text is TallyKind {
  return KIND.test(text)
}

/** How a question to the carrier ended, for its report (DOMAIN 10.8). */
export type QuestionEnd = 'answered' | 'slow' | 'failed' | 'limited'

/** An answer that took longer than this is slow. */
export const SLOW_MS = 5000

/** Null: the token had expired, so the question is asked again; or the status is 200, so the body decides. */
export function questionEndOf({ status, tookMs }: { readonly status: number; readonly tookMs: number }): QuestionEnd | null {
  if (status === 200 || status === 401) return null
  if (status === 404 || status === 410) return tookMs > SLOW_MS ? 'slow' : 'answered'
  return status === 429 ? 'limited' : 'failed'
}

export type Counts = Readonly<Record<string, number>>

export interface Tally {
  /** When the hour or the day begins. */
  readonly fromMs: number
  readonly counts: Counts
}

/** Counts to be added to the stored tallies of an hour and its day; of kind `report`: of a day of the carrier's report (`REPORT_SPAN`). */
export interface TallyAddition extends Tally {
  readonly kind: TallyKind | 'report'
}

/** The span of the tallies of the carrier's report: days in the relay's time zone, each stored as the beginning of that date in UTC. */
export const REPORT_SPAN = 'report'

/** The counts that a process adds at once. The process repeats a flush with the same number until it knows that the counts are stored. */
export interface TallyFlush {
  /** The name of the process. No two processes ever have the same name. */
  readonly by: string
  readonly number: number
  readonly additions: readonly TallyAddition[]
}

export function spanStart(span: TallySpan, atMs: number): number {
  return Math.floor(atMs / SPAN_MS[span]) * SPAN_MS[span]
}

/** The classes by which missed pushes are counted. Above the last limit the class is `later`. */
const LATENESS: readonly (readonly [limitMs: number, name: string])[] = [
  [60_000, '1m'],
  [5 * 60_000, '5m'],
  [15 * 60_000, '15m'],
  [HOUR_MS, '1h'],
  [4 * HOUR_MS, '4h'],
  [DAY_MS, '1d'],
]

export const LATENESS_CLASSES: readonly string[] = [...LATENESS.map(([, name]) => name), 'later']

/** Returns the class of a missed push, by the time from its event to the poll that found the event. */
export function latenessClass(latencyMs: number): string {
  return LATENESS.find(([limitMs]) => latencyMs <= limitMs)?.[1] ?? 'later'
}

/** Who or what a call to the carrier is for. `language`: texts that entries lack. `repeat`: it repeats a call after a failure or a refused token. */
export type CallSpender = 'schedule' | 'watchdog' | 'language' | 'operator' | 'token' | 'repeat' | `app:${string}`

/** Returns the tallies of `length` hours or days, up to the one that begins at `last`. A tally that is not stored has no counts. */
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

export function totalOf(counts: Counts, names: readonly string[] = Object.keys(counts)): number {
  return names.reduce((sum, name) => sum + (counts[name] ?? 0), 0)
}

export function sumOf(tallies: readonly Pick<Tally, 'counts'>[]): Counts {
  const sum: Record<string, number> = {}
  for (const { counts } of tallies) for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count
  return sum
}
