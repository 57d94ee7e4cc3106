import { eachHardCase, type HardCase, type ParcelPlan, type Scan } from './parcel-plan.ts'
import type { PushAttempt, PushRecord } from './pusher.ts'
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

export interface PushStats {
  /** All events of parcels so far. */
  readonly events: number
  readonly silenced: number
  readonly lost: number
  readonly duplicated: number
  readonly reordered: number
  /** Events whose push is still to be sent. */
  readonly waiting: number
  /** Requests to receivers, including retries. */
  readonly sent: number
  /** Requests that a receiver answered with 2xx. */
  readonly accepted: number
  readonly failed: number
  /** Pushes that no receiver answered with 2xx, and that are no longer retried. */
  readonly givenUp: number
  /** The number of requests by the status of their answer or, without an answer, by their error. */
  readonly answers: Readonly<Record<string, number>>
}

/** The number of calls of the carrier's API, by path and then by status. */
type CallStats = Readonly<Record<string, Readonly<Record<string, number>>>>

export interface SandboxStats {
  readonly calls: CallStats
  readonly tokensIssued: number
  readonly pushes: PushStats
  /** How often each hard case occurs in the whole plan, including events that have not happened yet. */
  readonly tally: Tally
  readonly time: { readonly simulated: string; readonly finished: boolean; readonly speed: number }
}

export interface CallCounter {
  count(path: string, status: number): void
  stats(): CallStats
}

export function createCallCounter(): CallCounter {
  const counts = new Map<string, Map<string, number>>()
  return {
    count: (path, status) => {
      const statuses = counts.get(path) ?? new Map<string, number>()
      counts.set(path, statuses.set(String(status), (statuses.get(String(status)) ?? 0) + 1))
    },
    stats: () => Object.fromEntries([...counts].map(([path, statuses]) => [path, Object.fromEntries(statuses)])),
  }
}

export function pushStats(records: readonly PushRecord[]): PushStats {
  const attempts = records.flatMap((record) => record.attempts)
  const count = (is: (record: PushRecord) => boolean): number => records.filter(is).length
  const isAccepted = ({ status }: PushAttempt) => status !== null && status >= 200 && status < 300
  const accepted = attempts.filter(isAccepted).length
  const answers = new Map<string, number>()
  for (const { status, error } of attempts) {
    const name = String(status ?? error)
    answers.set(name, (answers.get(name) ?? 0) + 1)
  }
  return {
    events: records.length,
    silenced: count(({ fate }) => fate === 'silenced'),
    lost: count(({ fate }) => fate === 'lost'),
    duplicated: count(({ copies }) => copies > 1),
    reordered: count(({ reordered }) => reordered),
    waiting: count(({ fate }) => fate === 'waiting'),
    sent: attempts.length,
    accepted,
    failed: attempts.length - accepted,
    givenUp: count((record) => record.fate === 'sent' && !record.attempts.some(isAccepted)),
    answers: Object.fromEntries(answers),
  }
}
