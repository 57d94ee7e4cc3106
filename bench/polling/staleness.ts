import type { Lifecycle } from './lifecycles.ts'
import type { Pushes } from './losses.ts'

/** When each entry became known, by parcel and scan; infinite: never. */
export type KnownTimes = readonly Float64Array[]

export interface Spread {
  readonly count: number
  readonly meanMs: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
}

export interface Staleness {
  readonly all: Spread
  /** Entries whose push was lost. */
  readonly lost: Spread
}

export function unknownTimes(lifecycles: readonly Lifecycle[]): KnownTimes {
  return lifecycles.map(({ scans }) => new Float64Array(scans.length).fill(Number.POSITIVE_INFINITY))
}

/** Measures how long entries existed before the poller knew them. */
export function measureStaleness(lifecycles: readonly Lifecycle[], pushes: Pushes, known: KnownTimes): Staleness {
  const all: number[] = []
  const lost: number[] = []
  for (const [parcel, { scans }] of lifecycles.entries()) {
    for (const [at, { atMs }] of scans.entries()) {
      const staleMs = (known[parcel]?.[at] ?? Number.POSITIVE_INFINITY) - atMs
      all.push(staleMs)
      if (pushes[parcel]?.[at] === null) lost.push(staleMs)
    }
  }
  return { all: spreadOf(all), lost: spreadOf(lost) }
}

function spreadOf(values: readonly number[]): Spread {
  const sorted = Float64Array.from(values).sort()
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0
  const meanMs = sorted.length === 0 ? 0 : sorted.reduce((sum, value) => sum + value, 0) / sorted.length
  return { count: sorted.length, meanMs, p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99) }
}
