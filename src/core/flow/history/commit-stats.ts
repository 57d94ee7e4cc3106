import type { BatchReport } from '../../domain/history/recording.ts'

/** A summary of a commit, for the metrics, the dispatcher and the feed. */
export interface CommitStats {
  readonly size: number
  readonly durationMs: number
  /** The number of observations by result. */
  readonly merged: readonly (readonly [result: string, count: number])[]
  readonly queued: boolean
  /** Whether parcels were joined, so that the order of waiting deliveries may have changed. */
  readonly joined: boolean
}

export function commitStatsOf({ outcomes, durationMs, joined }: Pick<BatchReport, 'outcomes' | 'durationMs' | 'joined'>): CommitStats {
  const merged = new Map<string, number>()
  const add = (result: string, by: number) => merged.set(result, (merged.get(result) ?? 0) + by)
  let queued = false
  for (const outcome of outcomes) {
    if (outcome.kind !== 'recorded') {
      add(outcome.kind, 1)
      continue
    }
    for (const anomaly of outcome.anomalies ?? []) add(anomaly, 1)
    if (!outcome.changed) add('unchanged', 1)
    else if (outcome.newEntries === 0) add('updated', 1)
    else add('new_entry', outcome.newEntries)
    if (outcome.queued > 0) queued = true
  }
  return { size: outcomes.length, durationMs, merged: [...merged], queued, joined: joined === true }
}
