import type { RefusedPushes } from '../ingest/refused-pushes.ts'

/** How many missed pushes were noticed in an hour, which begins at `fromMs`. */
export interface MissedInHour {
  readonly fromMs: number
  readonly count: number
}

/** Pushes that the relay itself answered with 503 in the last day, and what of the missed pushes that explains. */
export interface OwnRefusals {
  /** The newest first. */
  readonly spells: readonly RefusedPushes[]
  /** How many missed pushes were noticed in the last day, and how many of them while pushes were refused or soon after. */
  readonly missed: number
  readonly explained: number
  /** Whether that leaves so few that nobody else need be suspected. */
  readonly explainMost: boolean
}

const HOUR_MS = 3_600_000
/** While its disk is full the relay does not poll either, so it notices what it has refused when the polls have caught up. */
export const NOTICED_WITHIN_MS = 3 * HOUR_MS
/** The least share of the missed pushes that counts as most. */
const MOST = 0.8

/** Null: the relay refused none, or no missed push was noticed then. */
export function ownRefusalsOf(refused: readonly RefusedPushes[], missedByHour: readonly MissedInHour[]): OwnRefusals | null {
  const spells = refused.filter(({ cause }) => cause === 'not_stored' || cause === 'overload')
  const isExplained = ({ fromMs }: MissedInHour) =>
    spells.some((spell) => fromMs + HOUR_MS > spell.fromMs && fromMs <= spell.untilMs + NOTICED_WITHIN_MS)
  const [missed, explained] = [sumOf(missedByHour), sumOf(missedByHour.filter(isExplained))]
  return explained === 0 ? null : { spells, missed, explained, explainMost: explained >= missed * MOST }
}

function sumOf(hours: readonly MissedInHour[]): number {
  return hours.reduce((sum, { count }) => sum + count, 0)
}
