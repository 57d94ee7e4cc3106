import type { Counts, Tally } from '../../core/domain/admin/tally.ts'
import { DAY_MS, dayIn, QUARTER_MS } from '../../core/domain/calendar.ts'
import { latenessOfClass, type ReportNote } from '../../core/domain/history/report-notes.ts'

/** The kind of the tallies of the days of the report. */
export const DAYS = 'report'

/** The counts of the report, in its order. */
export const COUNTS = [
  'pushed',
  'late',
  'lost',
  'repeated',
  'reworded',
  'outOfOrder',
  'quarantined',
  'disagreed',
  'answered',
  'slow',
  'failed',
  'limited',
  'badSignature',
  'notTaken',
] as const

export type CountName = (typeof COUNTS)[number]

/** The counts that are proved by pushes, and those that are proved by parcels. */
export const PROVED_BY_PUSHES = ['late', 'repeated', 'reworded', 'outOfOrder', 'quarantined'] as const
export const PROVED_BY_PARCELS = ['lost', 'disagreed'] as const

/** How long after its end a month closes, in days. */
const OPEN_DAYS = 14

export interface Month {
  /** Such as 2026-10. */
  readonly name: string
  /** Its first day, and the first day of the next month (see `core/domain/calendar.ts`). */
  readonly from: number
  readonly to: number
  /** From this day on, what changes is a correction. */
  readonly closes: number
}

const MONTH = /^(\d{4})-(0[1-9]|1[0-2])$/

/** Reads a month; null: the text is none. */
export function readMonth(text: string): Month | null {
  const [, year, month] = MONTH.exec(text) ?? []
  return year === undefined || month === undefined ? null : monthOf(Date.parse(`${year}-${month}-01`))
}

export function monthOf(day: number): Month {
  const at = new Date(day)
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()]
  const to = Date.UTC(year, month + 1, 1)
  return { name: at.toISOString().slice(0, 7), from: Date.UTC(year, month, 1), to, closes: to + OPEN_DAYS * DAY_MS }
}

export function dayName(day: number): string {
  return new Date(day).toISOString().slice(0, 10)
}

/** The kind of the tallies of corrections of a month: each is of the day on which the corrections were found. */
export function correctionsOf(month: string): string {
  return `correction:${month}`
}

interface Addition extends Tally {
  readonly kind: string
}

/** Adds up counts by their days. What is found after the month of a day has closed becomes a correction (DOMAIN 10.9). */
export function createDayCounts(zone: string) {
  const rows = new Map<string, Addition & { readonly counts: Record<string, number> }>()
  return {
    /** `day`: on which it happened. `foundAtMs`: when the relay learnt of it. */
    add({ day, foundAtMs }: { readonly day: number; readonly foundAtMs: number }, added: Counts): void {
      const month = monthOf(day)
      const foundOn = dayIn(zone, foundAtMs)
      const isLate = foundOn >= month.closes
      const [kind, fromMs] = isLate ? [correctionsOf(month.name), foundOn] : [DAYS, day]
      const key = `${kind} ${fromMs}`
      const row = rows.get(key) ?? { kind, fromMs, counts: {} }
      rows.set(key, row)
      for (const [name, count] of Object.entries(added)) row.counts[name] = (row.counts[name] ?? 0) + count
    },
    additions: (): readonly Addition[] => [...rows.values()],
  }
}

export interface FoundNote {
  readonly atMs: number
  readonly note: ReportNote
}

/** A fact of a note. `day`: on which it happened. `foundAtMs`: when the relay learnt of it. */
export interface Proof {
  readonly name: string
  readonly id: number
  readonly parcelId: number
  readonly day: number
  readonly foundAtMs: number
}

/** What notes add to the report apart from plain counts: it depends on what was proved before. */
export interface NotedFacts {
  /** Each counts once. */
  readonly unique: readonly Proof[]
  /** Pushes of entries that polls had reported. If an entry was counted as lost, it is late instead. */
  readonly polled: readonly (Proof & { readonly isLate: boolean; readonly polledAs: readonly number[] })[]
  /** Examples of what is counted already. */
  readonly examples: readonly Proof[]
  readonly outages: readonly { readonly fromMs: number; readonly untilMs: number; readonly day: number }[]
}

/** Adds the plain counts of notes to `counts`, and returns the rest. */
export function foldNotes(notes: readonly FoundNote[], zone: string, counts: ReturnType<typeof createDayCounts>): NotedFacts {
  const dayOf = (quarter: number) => dayIn(zone, quarter * QUARTER_MS)
  for (const { atMs: foundAtMs, note } of notes)
    for (const [quarter, added] of Object.entries(note.counts)) counts.add({ day: dayOf(Number(quarter)), foundAtMs }, added)
  const proofs = <Row>(
    rows: (note: ReportNote) => readonly Row[] | undefined,
    read: (row: Row) => readonly [string, number, number, number],
  ) =>
    notes.flatMap(({ atMs: foundAtMs, note }) =>
      (rows(note) ?? []).map((row): Proof & { readonly row: Row } => {
        const [name, quarter, id, parcelId] = read(row)
        return { name, id, parcelId, day: dayOf(quarter), foundAtMs, row }
      }),
    )
  return {
    unique: [
      ...proofs(
        ({ lost }) => lost,
        ([quarter, entry, parcelId]) => ['lost', quarter, entry, parcelId],
      ),
      ...proofs(
        ({ disagreed }) => disagreed,
        ([quarter, parcelId]) => ['disagreed', quarter, parcelId, parcelId],
      ),
    ],
    polled: proofs(
      ({ polled }) => polled,
      ([quarter, , inboxId]) => ['late', quarter, inboxId, 0],
    ).map((proof) => {
      const [, isLate, , ...polledAs] = proof.row
      return { ...proof, isLate: isLate === 1, polledAs }
    }),
    examples: proofs(
      ({ evidence }) => evidence,
      ([name, quarter, inboxId]) => [name, quarter, inboxId, 0],
    ),
    outages: notes.flatMap(({ note }) => (note.outages ?? []).map(([fromMs, untilMs]) => ({ fromMs, untilMs, day: dayIn(zone, fromMs) }))),
  }
}

/** Outages, in the order of their beginnings. `untilMs` null: it lasts. */
export interface Outage {
  readonly fromMs: number
  readonly untilMs: number | null
}

/** The histogram of lateness in the counts: how many pushes came after about which time, the shortest first. */
function histogramOf(counts: Counts): readonly (readonly [latenessMs: number, count: number])[] {
  return Object.entries(counts)
    .flatMap(([name, count]) => (/^b\d+$/.test(name) ? [[latenessOfClass(Number(name.slice(1))), count] as const] : []))
    .sort(([one], [other]) => one - other)
}

/** Returns the lateness below which a share of the pushes is; null: there was no push. */
export function percentile(counts: Counts, share: number): number | null {
  const histogram = histogramOf(counts)
  const all = histogram.reduce((sum, [, count]) => sum + count, 0)
  let left = Math.ceil(all * share)
  for (const [latenessMs, count] of histogram) {
    left -= count
    if (left <= 0 && all > 0) return Math.round(latenessMs)
  }
  return null
}

/** The bounds of the lateness chart, in milliseconds, with their names. Above the last is `later`. */
export const LATENESS_BOUNDS: readonly (readonly [limitMs: number, name: string])[] = [
  [1000, '1 s'],
  [10_000, '10 s'],
  [60_000, '1 min'],
  [600_000, '10 min'],
  [3_600_000, '1 h'],
  [21_600_000, '6 h'],
  [DAY_MS, '1 d'],
]

/** Counts pushes by `LATENESS_BOUNDS`. */
export function latenessBars(counts: Counts) {
  const limitOf = (latenessMs: number) => LATENESS_BOUNDS.find(([limitMs]) => latenessMs <= limitMs)?.[0] ?? null
  const bars = Map.groupBy(histogramOf(counts), ([latenessMs]) => limitOf(latenessMs))
  const limits = [...LATENESS_BOUNDS.map(([limitMs]) => limitMs), null]
  return limits.map((upToMs) => ({ upToMs, count: (bars.get(upToMs) ?? []).reduce((sum, [, count]) => sum + count, 0) }))
}

/** Returns every count of the report. */
export function namedCounts(counts: Counts): Readonly<Record<CountName, number>> {
  const of = (name: CountName) => counts[name] ?? 0
  // A slow answer is an answer.
  const named = COUNTS.map((name) => [name, name === 'answered' ? of('answered') + of('slow') : of(name)])
  // All names are there, which `fromEntries` does not tell.
  // oxlint-disable-next-line typescript/consistent-type-assertions -- see above
  return Object.fromEntries(named) as Record<CountName, number>
}
