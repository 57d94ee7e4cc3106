import { amounts, type EventDescriptions, type EventsOf, since, texts, time } from '../../console/events/operator-events.ts'
import type { FindConcerns, Found, SeenBefore } from '../../console/problems/concern.ts'
import type { ConcernDescriptions } from '../../console/problems/concern-kinds.ts'
import { countText } from '../../core/domain/amounts.ts'
import type { Reads } from '../../core/flow/relay-part.ts'
import { loadRetention } from './remove-aged.rows.ts'
import { isHeldLong, PASS_LATE_MS, type RetentionReport } from './retention.rules.ts'

export const RETENTION_EVENTS = {
  /** Retention should have deleted this data at least 30 days ago, but could not: it is undelivered, in quarantine or still needed. */
  retention_held: {
    kind: 'warn',
    state: 'data held back',
    page: '/retention',
    tell: (of) => [
      'Data that is past its time has been held back since ',
      time(of('since')),
      ': it is undelivered, in quarantine or still needed',
    ],
    members: () => ({ held: amounts(), since: since() }),
  },
  /** Retention deleted undelivered, quarantined or needed data older than `retention.held`. `endpoints`: the ids of endpoints that did not get it. */
  retention_gave_up: {
    kind: 'bad',
    state: 'data given up',
    page: '/retention',
    tell: () => [
      'Retention has removed data that was still undelivered, in quarantine or needed, because it was older than retention.held',
    ],
    members: () => ({ givenUp: amounts(), endpoints: texts() }),
  },
} satisfies EventDescriptions

declare module '../../core/domain/delivery/operator-event.ts' {
  interface OperatorEvents extends EventsOf<typeof RETENTION_EVENTS> {}
}

export const RETENTION_KINDS = {
  retention_stopped: { canWait: true, runbook: ['retention-does-not-run', 'retention does not run'] },
  retention_held: { canWait: true, runbook: ['retention_held', 'retention is held back'] },
} satisfies ConcernDescriptions

declare module '../../console/problems/concern-kinds.ts' {
  interface ConcernKinds extends Readonly<Record<keyof typeof RETENTION_KINDS, unknown>> {}
}

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
