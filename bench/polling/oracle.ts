import type { Lifecycle } from './lifecycles.ts'
import type { Pushes } from './losses.ts'

/**
 * The least total staleness of lost entries that any poller could reach with so many calls, knowing the future. A call is worth making only
 * at the moment of a lost scan, where it brings that one and all the lost ones before it; what no call brings is counted up to the
 * parcel's delivery, when every poller here looks. So the bound is what the best calls save, dearest first (savings of one parcel diminish).
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

/** By number of calls: the least sum of hours unknown, for one parcel. */
function leastByCalls(lost: readonly number[], endMs: number): readonly number[] {
  // least[last]: with the calls so far, the last of them made at lost scan `last`; -1 before any.
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
