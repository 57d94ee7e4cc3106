import type { Lifecycle } from './lifecycles.ts'
import type { Pushes } from './losses.ts'

/**
 * The least staleness of lost entries that a poller could reach with so many calls if it knew the future. It calls only at the moment of a
 * lost scan, which brings that scan and all lost ones before it. Entries that no call brings are unknown until the delivery, when every poller
 * here calls. The bound takes the calls that save most first (savings within one parcel diminish).
 */
export function oracleMeanMs(lifecycles: readonly Lifecycle[], pushes: Pushes, calls: number): number {
  const savings: number[] = []
  let totalMs = 0
  let lostCount = 0
  for (const [parcel, { scans }] of lifecycles.entries()) {
    const lost = scans.filter((_, at) => pushes[parcel]?.[at] === null).map(({ atMs }) => atMs)
    const endMs = scans.at(-1)?.atMs ?? 0
    const least = leastByCalls(lost, endMs)
    totalMs += least[0] ?? 0
    lostCount += lost.length
    for (let at = 1; at < least.length; at++) savings.push((least[at - 1] ?? 0) - (least[at] ?? 0))
  }
  const saved = savings.sort((a, b) => b - a).slice(0, calls)
  return lostCount === 0 ? 0 : Math.max(0, totalMs - saved.reduce((sum, value) => sum + value, 0)) / lostCount
}

/** The least total time unknown for one parcel, by number of calls. */
function leastByCalls(lost: readonly number[], endMs: number): readonly number[] {
  // least[last]: the minimum with the calls so far if the last one is at lost scan `last`; -1: no call yet.
  const cost = (from: number, to: number, lookMs: number) => lost.slice(from, to).reduce((sum, atMs) => sum + (lookMs - atMs), 0)
  let ending = new Map<number, number>([[-1, 0]])
  const best: number[] = [cost(0, lost.length, endMs)]
  for (let calls = 1; calls <= lost.length; calls++) {
    const next = new Map<number, number>()
    for (const [last, sum] of ending) {
      for (let look = last + 1; look < lost.length; look++) {
        const total = sum + cost(last + 1, look + 1, lost[look] ?? endMs)
        next.set(look, Math.min(next.get(look) ?? Number.POSITIVE_INFINITY, total))
      }
    }
    ending = next
    best.push(Math.min(...[...ending].map(([last, sum]) => sum + cost(last + 1, lost.length, endMs))))
  }
  return best
}
