import type { KeptAction } from '../../../domain/admin/operator-action.ts'
import type { Tally, TallyKind, TallySpan } from '../../../domain/admin/tally.ts'
import type { OperatorEventQuery, TimeCursor, ToldEvent } from '../../../domain/delivery/operator-event.ts'
import type { ReadSide } from '../../read-side.ts'

/** Lists the events that operators were notified of, and the orders that they gave (CONTRACT, `/relay/operator-events`, `/relay/audit`). */
export interface OperationQueries {
  /** Lists events, the newest first. Null: no restriction; `cursor` null: the first page. */
  events(
    question: Omit<OperatorEventQuery, 'before'> & { readonly cursor: TimeCursor | null },
  ): Promise<{ readonly events: readonly ToldEvent[]; readonly next: string | null }>
  /** Lists actions of the audit trail, the newest first. */
  actions(question: {
    readonly cursor: TimeCursor | null
    readonly limit: number
  }): Promise<{ readonly actions: readonly KeptAction[]; readonly next: string | null }>
  /** Lists the stored counts of a kind, by the hour or the day, the oldest first. Null: no limit. */
  tallies(question: {
    readonly kind: TallyKind
    readonly span: TallySpan
    readonly fromMs: number | null
    readonly toMs: number | null
  }): Promise<readonly Tally[]>
}

export function createOperationQueries({
  reads,
}: {
  readonly reads: Pick<ReadSide, 'listOperatorEvents' | 'listActions' | 'listTallies'>
}): OperationQueries {
  return {
    async events({ cursor, ...query }) {
      const events = await reads.listOperatorEvents({ ...query, before: cursor })
      return { events, next: nextAfter(events, query.limit) }
    },
    tallies: ({ fromMs, toMs, ...query }) => reads.listTallies({ ...query, fromMs: fromMs ?? 0, toMs: toMs ?? Number.MAX_SAFE_INTEGER }),
    async actions({ cursor, limit }) {
      const actions = await reads.listActions({ before: cursor, limit })
      return { actions, next: nextAfter(actions, limit) }
    },
  }
}

function nextAfter(rows: readonly TimeCursor[], limit: number): string | null {
  const last = rows.length < limit ? undefined : rows.at(-1)
  return last === undefined ? null : `${last.atMs}.${last.id}`
}

const CURSOR = /^(\d{1,15})\.(\d{1,15})$/

/** Parses the cursor of a page; null: the text is no cursor. */
export function readTimeCursor(text: string): TimeCursor | null {
  const [, atMs, id] = CURSOR.exec(text) ?? []
  return atMs === undefined || id === undefined ? null : { atMs: Number(atMs), id: Number(id) }
}
