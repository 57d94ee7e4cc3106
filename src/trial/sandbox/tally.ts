import { eachHardCase, type HardCase } from './hard-cases.ts'
import type { ParcelPlan, Scan } from './parcel-plan.ts'
import { shownWords } from './vocabulary.ts'

export type Tally = Readonly<Record<HardCase, number>>

function countBy(scans: readonly Scan[], keyOf: (scan: Scan) => string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const scan of scans) counts.set(keyOf(scan), (counts.get(keyOf(scan)) ?? 0) + 1)
  return counts
}

const several = (counts: ReadonlyMap<string, number>): number => [...counts.values()].filter((count) => count > 1).length

const wordOf = (scan: Scan): string => JSON.stringify([scan.atMs, scan.status, scan.detailedStatus])
const identityOf = (scan: Scan): string => JSON.stringify([wordOf(scan), scan.pullLocation, scan.pushLocation])

/** Keeps only the last scan for each value of `keyOf`. */
function distinct(scans: readonly Scan[], keyOf: (scan: Scan) => string): readonly Scan[] {
  return [...new Map(scans.map((scan) => [keyOf(scan), scan])).values()]
}

function backDatedIn(scans: readonly Scan[]): number {
  let newestMs = -Infinity
  let late = 0
  for (const scan of [...scans].sort((a, b) => a.publishedAtMs - b.publishedAtMs)) {
    if (scan.atMs < newestMs) late += 1
    newestMs = Math.max(newestMs, scan.atMs)
  }
  return late
}

function tallyParcel(plan: ParcelPlan): Tally {
  const { scans } = plan
  const count = (is: (scan: Scan) => boolean): number => scans.filter(is).length
  return {
    equalInstants: several(countBy(distinct(scans, wordOf), (scan) => String(scan.atMs))),
    twoPlaces: several(countBy(distinct(scans, identityOf), wordOf)),
    equalEntries: several(countBy(scans, identityOf)),
    unknownWords: count((scan) => !shownWords.has(scan.status) || !shownWords.has(scan.detailedStatus)),
    emptyPullLocation: count((scan) => scan.pullLocation === '' && (scan.pushLocation ?? '') !== ''),
    emptyPushLocation: count((scan) => scan.pullLocation !== '' && (scan.pushLocation ?? '') === ''),
    backDated: backDatedIn(scans),
    wholeSecondPulls: count((scan) => scan.pullTime !== 'milliseconds' && scan.atMs % 1000 !== 0),
    textsChanged: plan.amendments.filter(({ kind }) => kind === 'changed').length,
    textsWithdrawn: plan.amendments.filter(({ kind }) => kind === 'withdrawn').length,
    trackingIdsAdded: plan.laterTrackingId === null ? 0 : 1,
    unknownFields: plan.extra.length > 0 && scans.some((scan) => scan.extra.length > 0) ? 1 : 0,
    numberOnly: plan.numberOnly ? 1 : 0,
    spacedBodies: plan.spacedBodies ? 1 : 0,
  }
}

/**
 * Counts the hard cases in the planned entries. The counts may differ from the requested fractions, because one case can cause another. The
 * last four members count parcels. The others count entries, instants or groups of equal entries.
 */
export function tallyWorld(plans: readonly ParcelPlan[]): Tally {
  const tallies = plans.map(tallyParcel)
  return eachHardCase((name) => tallies.reduce((sum, tally) => sum + tally[name], 0))
}
