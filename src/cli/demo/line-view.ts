import type { HappeningKind } from './happenings.ts'
import { totalsOf } from './picture.ts'
import type { View } from './view.ts'
import { presentHappening, presentLastTold, presentTotals } from './wording.ts'

/** How many of a kind are told one by one. */
const TOLD_MAX = 4
const TOTALS_EVERY_MS = 2000

/** For files and pipes: the first few of each kind, and every two seconds, and once all is complete, the totals if they changed. */
export function createLineView(output: { write(text: string): unknown }, monotonicMs: () => number): View {
  const told = new Map<HappeningKind, number>()
  let totals = ''
  let totalsAtMs = Number.NEGATIVE_INFINITY
  const line = (text: string) => void output.write(`${text}\n`)
  return {
    note: line,
    end: line,
    show(picture, happenings) {
      for (const happening of happenings) {
        const count = (told.get(happening.kind) ?? 0) + 1
        told.set(happening.kind, count)
        if (count <= TOLD_MAX) line(presentHappening(happening))
        if (count === TOLD_MAX) line(presentLastTold(happening.kind))
      }
      const now = presentTotals(picture).join(' · ')
      const { complete, parcels } = totalsOf(picture)
      if (now === totals || (complete < parcels && monotonicMs() - totalsAtMs < TOTALS_EVERY_MS)) return
      line(now)
      totals = now
      totalsAtMs = monotonicMs()
    },
  }
}
