import type { HappeningKind } from './happenings.ts'
import { totalsOf } from './picture.ts'
import type { View } from './view.ts'
import { presentElision, presentHappening, presentReplicas, presentTotals } from './wording.ts'

/** How many happenings of a kind are printed one by one. */
const SHOWN_MAX = 4
const TOTALS_EVERY_MS = 2000

/** For files and pipes: prints the first few of each kind and, at most every two seconds until all is complete, totals that changed. */
export function createLineView(output: { write(text: string): unknown }, monotonicMs: () => number): View {
  const counts = new Map<HappeningKind, number>()
  let totals = ''
  let totalsAtMs = Number.NEGATIVE_INFINITY
  const line = (text: string) => void output.write(`${text}\n`)
  return {
    note: line,
    end: line,
    // Whatever was printed stays where it is.
    pin: () => undefined,
    show(picture, happenings) {
      for (const happening of happenings) {
        const count = (counts.get(happening.kind) ?? 0) + 1
        counts.set(happening.kind, count)
        if (count <= SHOWN_MAX) line(presentHappening(happening))
        if (count === SHOWN_MAX) line(presentElision(happening.kind))
      }
      const now = [presentTotals(picture).join(' · '), ...presentReplicas(picture)].join('\n')
      const { complete, parcels } = totalsOf(picture)
      if (now === totals || (complete < parcels && monotonicMs() - totalsAtMs < TOTALS_EVERY_MS)) return
      line(now)
      totals = now
      totalsAtMs = monotonicMs()
    },
  }
}
