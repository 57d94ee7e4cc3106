import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DAY_MS, dayIn } from '../../../src/core/domain/calendar.ts'
import { latenessClassOf, latenessOfClass, type Noted, summarizeNotes } from '../../../src/core/domain/history/report-notes.ts'
import { createDayCounts, foldNotes, monthOf, namedCounts, percentile, readMonth } from '../../../src/insight/report/report.rules.ts'

const ZONES = ['UTC', 'Europe/Stockholm', 'Asia/Kathmandu', 'America/St_Johns', 'Pacific/Apia'] as const
const FROM = Date.UTC(2025, 0, 1)
const instant = fc.integer({ min: FROM, max: FROM + 800 * DAY_MS })
const noted: fc.Arbitrary<Noted> = fc.oneof(
  fc.record({
    kind: fc.constant('pushed' as const),
    atMs: instant,
    latenessMs: fc.integer({ min: 0, max: 90 * DAY_MS }),
    isLate: fc.boolean(),
    inboxId: fc.nat(),
    polledAs: fc.array(fc.nat(), { maxLength: 2 }),
  }),
  fc.record({ kind: fc.constantFrom('repeated', 'reworded', 'outOfOrder', 'quarantined'), atMs: instant, inboxId: fc.nat() }),
)

/** What notes add up to: counts by kind and day. */
function added(notes: readonly { readonly atMs: number; readonly noted: readonly Noted[] }[], zone: string) {
  const counts = createDayCounts(zone)
  const facts = foldNotes(
    notes.map(({ atMs, noted: all }) => ({ atMs, note: summarizeNotes(all) })),
    zone,
    counts,
  )
  return { rows: new Map(counts.additions().map(({ kind, fromMs, counts: named }) => [`${kind} ${fromMs}`, named])), facts }
}

describe('the days of the report', () => {
  test('10.9: notes add up to the same days in any order, and however they are split', () => {
    const note = fc.record({ atMs: instant, noted: fc.array(noted, { maxLength: 6 }) })
    fc.assert(
      fc.property(
        fc.array(note, { maxLength: 8 }),
        fc.constantFrom(...ZONES),
        fc.infiniteStream(fc.double({ min: 0, max: 1 })),
        (notes, zone, random) => {
          const shuffled = notes
            .map((one) => ({ one, at: random.next().value }))
            .toSorted((a, b) => a.at - b.at)
            .map(({ one }) => one)
          const split = notes.flatMap(({ atMs, noted: all }) => all.map((one) => ({ atMs, noted: [one] })))
          const { rows } = added(notes, zone)
          expect(added(shuffled, zone).rows).toEqual(rows)
          expect(added(split, zone).rows).toEqual(rows)
        },
      ),
    )
  })

  test('10.9: a month closes 14 days after its end; what is found later is a correction of that day', () => {
    fc.assert(
      fc.property(instant, instant, fc.constantFrom(...ZONES), (happenedMs, foundAtMs, zone) => {
        const counts = createDayCounts(zone)
        const day = dayIn(zone, happenedMs)
        counts.add({ day, foundAtMs }, { lost: -1 })
        const month = monthOf(day)
        const foundOn = dayIn(zone, foundAtMs)
        const isClosed = foundOn >= month.to + 14 * DAY_MS
        const row = isClosed ? { kind: `correction:${month.name}`, fromMs: foundOn } : { kind: 'report', fromMs: day }
        expect(counts.additions()).toEqual([{ ...row, counts: { lost: -1 } }])
      }),
    )
  })

  test('days are those of the zone, also when its clocks are changed or a date is left out', () => {
    fc.assert(
      fc.property(instant, fc.constantFrom(...ZONES), (atMs, zone) => {
        const parts = new Intl.DateTimeFormat('en', { timeZone: zone, year: 'numeric', month: 'numeric', day: 'numeric' }).formatToParts(
          atMs,
        )
        const of = (type: string) => Number(parts.find((part) => part.type === type)?.value)
        expect(dayIn(zone, atMs)).toBe(Date.UTC(of('year'), of('month') - 1, of('day')))
      }),
    )
  })

  test('10.1: percentiles are at most 5 % off', () => {
    const lateness = fc.integer({ min: 101, max: 60 * DAY_MS })
    fc.assert(
      fc.property(fc.array(lateness, { minLength: 1, maxLength: 200 }), fc.constantFrom(0.5, 0.95, 0.99), (all, share) => {
        const counts: Record<string, number> = {}
        for (const one of all) counts[`b${latenessClassOf(one)}`] = (counts[`b${latenessClassOf(one)}`] ?? 0) + 1
        const exact = all.toSorted((a, b) => a - b)[Math.ceil(all.length * share) - 1] ?? 0
        expect(Math.abs((percentile(counts, share) ?? 0) - exact)).toBeLessThanOrEqual(exact * 0.05 + 1)
      }),
    )
    expect([latenessOfClass(0), percentile({}, 0.5)]).toEqual([50, null])
  })

  test('a note keeps a bounded number of examples, and counts them all', () => {
    const many = Array.from({ length: 500 }, (_, at): Noted => ({ kind: 'repeated', atMs: FROM, inboxId: at }))
    const note = summarizeNotes(many)
    expect([note.evidence?.length, Object.values(note.counts)]).toEqual([20, [{ repeated: 500 }]])
  })

  test('a slow answer is an answer, and what is not counted is 0', () => {
    expect(namedCounts({ answered: 2, slow: 1, b3: 9 })).toMatchObject({ answered: 3, slow: 1, lost: 0 })
  })

  test('months are read as they are written in reports only', () => {
    expect(readMonth('2026-12')).toEqual({
      name: '2026-12',
      from: Date.UTC(2026, 11, 1),
      to: Date.UTC(2027, 0, 1),
      closes: Date.UTC(2027, 0, 15),
    })
    for (const odd of ['2026-00', '2026-13', '26-10', '2026-1', '2026-10-01', ' 2026-10', '']) expect(readMonth(odd)).toBeNull()
  })
})
