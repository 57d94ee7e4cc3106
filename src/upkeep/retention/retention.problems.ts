import type { FindConcerns, Found, SeenBefore } from '../../console/problems/concern.ts'
import { countText } from '../../core/domain/amounts.ts'
import type { Reads } from '../../core/flow/relay.ts'
import { loadRetention } from './remove-aged.rows.ts'
import { isHeldLong, PASS_LATE_MS, type RetentionReport } from './retention.rules.ts'

export function retentionProblems({ reads }: Reads<'session'>): FindConcerns {
  return async ({ isClockDoubted, ...times }) =>
    concernsOfRetention(isClockDoubted ? null : (await loadRetention(reads.session)).last, times)
}

type Times = Pick<SeenBefore, 'startedAtMs' | 'nowMs'>

/** @param last the last pass; null: none has ended */
export function concernsOfRetention(last: RetentionReport | null, { startedAtMs, nowMs }: Times): readonly Found[] {
  // A relay that was stopped for long makes its pass within the hour.
  const ageMs = nowMs - Math.max(last?.endedAtMs ?? 0, startedAtMs)
  if (ageMs > PASS_LATE_MS)
    return [
      {
        kind: 'retention_stopped',
        title: 'Retention does not run',
        sinceMs: nowMs - ageMs,
        evidence: ['No pass has ended since then, so nothing old is removed, and the disk fills.'],
        todo: ['The log says why. Then start a pass: parcel-relay prune.'],
      },
    ]
  if (last === null || !isHeldLong(last)) return []
  const count = Object.values(last.held).reduce((sum, one) => sum + one, 0)
  return [
    {
      kind: 'retention_held',
      title: `${countText(count)} records are past their time`,
      sinceMs: last.heldSinceMs,
      evidence: [
        'They cannot be removed, because they are not delivered, in quarantine, or needed by an endpoint that is behind. After retention.held they are given up.',
      ],
      todo: ['Mend or remove the endpoints for which deliveries wait, and reprocess or dismiss what is in quarantine.'],
    },
  ]
}
