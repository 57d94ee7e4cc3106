import type { ReportAnswer } from '../../../src/insight/report/report.routes.ts'
import { COUNTS, LATENESS_BOUNDS, namedCounts, PROVED_BY_PARCELS, PROVED_BY_PUSHES } from '../../../src/insight/report/report.rules.ts'

/** A report of October 2026. `size` 0: nothing happened; 1: an ordinary month; more: all lists are longer than is shown, and all numbers huge. */
export function someReport(size: number): ReportAnswer {
  const counts = (at: number) =>
    namedCounts(
      Object.fromEntries(
        COUNTS.map((name, nth) => [name, name === 'pushed' || name === 'answered' ? size * (900 + at * 7) : size * ((nth + at) % 9)]),
      ),
    )
  const many = size === 0 ? 0 : size === 1 ? 2 : 50
  const list = <Item>(make: (at: number) => Item) => Array.from({ length: many }, (_, at) => make(at))
  return {
    month: '2026-10',
    zone: 'America/Argentina/ComodRivadavia',
    state: 'closed',
    closesOn: '2026-11-15',
    countedFrom: '2026-01-01',
    graceMs: 3000,
    counts: counts(31),
    lateness: size === 0 ? null : { p50Ms: 850, p95Ms: 94_000 * size, p99Ms: 4_000_000 * size },
    latenessBars: [...LATENESS_BOUNDS, null].map((bound, at) => ({ upToMs: bound?.[0] ?? null, count: size * (900 - at * 100) })),
    days: Array.from({ length: 31 }, (_, at) => ({ day: `2026-10-${String(at + 1).padStart(2, '0')}`, counts: counts(at) })),
    outages: list((at) => ({
      from: new Date(Date.UTC(2026, 9, 2, at)).toISOString(),
      until: at === 49 ? null : new Date(Date.UTC(2026, 9, 2, at, 40)).toISOString(),
    })),
    corrections: list((at) => ({
      foundOn: `2026-12-${String((at % 30) + 1).padStart(2, '0')}`,
      changes: Object.fromEntries(COUNTS.map((name) => [name, (at % 2 === 0 ? -1 : 1) * size])),
    })),
    evidence: [...PROVED_BY_PARCELS, ...PROVED_BY_PUSHES].map((name) => ({
      name,
      of: PROVED_BY_PARCELS.some((one) => one === name) ? ('parcels' as const) : ('inbox' as const),
      ids: list((at) => (size > 1 ? `${'A1B2C3D4'.repeat(4)}${at}` : String(4000 + at))),
      more: size * 3,
      removed: size * 2,
      unkept: size,
    })),
  }
}
