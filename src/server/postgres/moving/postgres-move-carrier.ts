import type { UnavailableReason } from '../../../core/domain/polling/carrier-answer.ts'
import type { CarrierMemory } from '../../../core/domain/polling/carrier-memory.ts'
import type { MoveClient } from './postgres-move-client.ts'

const NOW_MS = '(extract(epoch from clock_timestamp()) * 1000)::bigint'
/** The time of the budget's clock, which pauses use. It never goes back, even if the server's clock is set back. */
const BUDGET_MS = `greatest(budget.seen_ms, ${NOW_MS} + budget.offset_ms)`

interface SharedRow {
  readonly now_ms: number
  readonly days: Readonly<Record<string, number>>
  readonly paused_ms: number
  readonly token_paused_ms: number
  readonly refused_ms: number | null
  readonly tries: number
  readonly mark: string | null
}

/**
 * Reads the facts about the carrier that replicas share, in the form in which a single relay stores them; null: no calls, pauses or refusals
 * are stored.
 */
export async function readSharedCarrier({ query }: MoveClient): Promise<CarrierMemory | null> {
  const { rows } = await query<SharedRow>(`select ${NOW_MS} as now_ms, days, budget.paused_until_ms - ${BUDGET_MS} as paused_ms,
      token.paused_until_ms - ${BUDGET_MS} as token_paused_ms, token.refused_until_ms - ${BUDGET_MS} as refused_ms, tries, mark
    from carrier_budget as budget, carrier_token as token where budget.id = 1 and token.id = 1`)
  const [row] = rows
  if (row === undefined) return null
  const until = (leftMs: number) => (leftMs > 0 ? row.now_ms + leftMs : null)
  const memory: CarrierMemory = {
    atMs: row.now_ms,
    days: Object.entries(row.days).map(([day, calls]) => ({ day: Number(day), calls: Number(calls) })),
    pausedUntilMs: until(row.paused_ms),
    tokenPausedUntilMs: until(row.token_paused_ms),
    refusal:
      row.refused_ms === null ? null : { tries: row.tries, untilMs: row.now_ms + Math.max(0, row.refused_ms), mark: readMarkOf(row.mark) },
  }
  const { days, pausedUntilMs, tokenPausedUntilMs, refusal } = memory
  return days.length === 0 && pausedUntilMs === null && tokenPausedUntilMs === null && refusal === null ? null : memory
}

/** Writes the facts that a single relay keeps about the carrier into the tables that replicas share. */
export async function writeSharedCarrier({ query }: MoveClient, memory: CarrierMemory): Promise<void> {
  const { days, pausedUntilMs, tokenPausedUntilMs, refusal } = memory
  const calls = Object.fromEntries(days.map((one) => [one.day, one.calls]))
  await query('update carrier_budget set days = $1::text::jsonb, paused_until_ms = $2 where id = 1', [
    JSON.stringify(calls),
    pausedUntilMs ?? 0,
  ])
  // A single relay stores a pause for tokens only if the token endpoint asked for the pause, so this is always the reason.
  const trouble: UnavailableReason | null = tokenPausedUntilMs === null ? null : 'rate_limited'
  await query('update carrier_token set paused_until_ms = $1, trouble = $2, tries = $3, refused_until_ms = $4, mark = $5 where id = 1', [
    tokenPausedUntilMs ?? 0,
    trouble,
    refusal?.tries ?? 0,
    refusal?.untilMs ?? null,
    refusal?.mark === null || refusal === null ? null : JSON.stringify(refusal.mark),
  ])
}

function readMarkOf(text: string | null): NonNullable<CarrierMemory['refusal']>['mark'] {
  // Only the shared token writes this, so its shape is certain.
  return text === null ? null : (JSON.parse(text) as { readonly salt: string; readonly digest: string })
}
