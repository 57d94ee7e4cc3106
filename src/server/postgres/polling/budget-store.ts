import { type RawBuilder, sql } from 'kysely'
import { type BudgetRow, settleBudget } from '../../../core/domain/polling/call-budget.ts'
import type { BudgetStore } from '../../../core/store/polling/shared-carrier.ts'
import type { PostgresWriter } from '../postgres.ts'
import { rawStatement } from '../postgres-dialect.ts'

/** The server's time when the expression is evaluated, in epoch milliseconds. */
const SERVER_MS = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`
/** The current time by the budget's clock, for a statement that does not lock the budget's row. */
export const BUDGET_MS = sql<number>`(select greatest(seen_ms, ${SERVER_MS} + offset_ms) from carrier_budget where id = 1)`

interface StoredRow extends Pick<BudgetRow, 'days' | 'slots'> {
  readonly seen_ms: number
  readonly offset_ms: number
  readonly due_us: number
  readonly paused_until_ms: number
  readonly last_day: number
  readonly app_waits: BudgetRow['appWaits']
  readonly server_ms: number
}

/** Locks the row before it reads the clock. A time that was read first would be outdated after a wait for the lock. */
const lockRow = (serverMs: RawBuilder<number>) =>
  rawStatement()(
    () => sql<StoredRow>`
      with held as materialized (select * from carrier_budget where id = 1 for update)
      select held.*, ${serverMs} as server_ms from held`,
  )

type NumberParam = 'seenMs' | 'offsetMs' | 'dueUs' | 'pausedUntilMs' | 'lastDay'

const saveRow = rawStatement<Pick<BudgetRow, NumberParam> & { days: string; slots: string; appWaits: string }>()(
  (p) => sql`
    update carrier_budget set seen_ms = ${p.seenMs}::bigint, offset_ms = ${p.offsetMs}::bigint, due_us = ${p.dueUs}::bigint,
      paused_until_ms = ${p.pausedUntilMs}::bigint, last_day = ${p.lastDay}::bigint, days = ${p.days}::text::jsonb,
      slots = ${p.slots}::text::jsonb, app_waits = ${p.appWaits}::text::jsonb
    where id = 1`,
)

/**
 * Makes the budget store, a row that all replicas share. The row stays locked for one round trip: the server reads the row, this process
 * computes, and then sends the update and the commit together.
 *
 * @param serverMs the server's clock; a test passes another clock.
 */
export function createBudgetStore(writer: PostgresWriter, serverMs: RawBuilder<number> = SERVER_MS): BudgetStore {
  const lock = lockRow(serverMs)
  return {
    settle: (request, limits) =>
      writer.transaction(async (session) => {
        const [stored] = await session.all(lock, {})
        if (stored === undefined) throw new Error('the row of the budget is gone')
        const nowMs = stored.server_ms
        const { row, answer } = settleBudget(readRow(stored), { nowMs, wallMs: nowMs }, request, limits)
        const { days, slots, appWaits, ...numbers } = row
        session.enqueueWrite(saveRow, {
          ...numbers,
          days: JSON.stringify(days),
          slots: JSON.stringify(slots),
          appWaits: JSON.stringify(appWaits),
        })
        return answer
      }),
  }
}

function readRow(stored: StoredRow): BudgetRow {
  const { days, slots } = stored
  return {
    seenMs: stored.seen_ms,
    offsetMs: stored.offset_ms,
    dueUs: stored.due_us,
    pausedUntilMs: stored.paused_until_ms,
    lastDay: stored.last_day,
    days,
    slots,
    appWaits: stored.app_waits,
  }
}
