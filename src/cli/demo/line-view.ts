import type { HappeningKind } from './happenings.ts'
import { totalsOf } from './picture.ts'
import type { View } from './view.ts'
import { presentElision, presentHappening, presentReplicas, presentTotals } from './wording.ts'

/** How many happenings of each kind are printed. */
const SHOWN_MAX = 4
const TOTALS_EVERY_MS = 2000

/** Creates the view for files and pipes. It prints the first few happenings of each kind and, at most every two seconds, changed totals. */
export function createLineView(output: { write(text: string): unknown }, monotonicMs: () => number): View {
  const counts = new Map<HappeningKind, number>()
  let totals = ''
  let totalsAtMs = Number.NEGATIVE_INFINITY
  const line = (text: string) => void output.write(`${text}\n`)
  return {
    note: line,
    end: line,
    // Printed lines stay anyway, so there is nothing to pin.
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
