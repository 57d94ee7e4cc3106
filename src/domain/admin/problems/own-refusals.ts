import type { RefusedPushes } from '../../ingest/refused-pushes.ts'

/** How many missed pushes were noticed in the hour that begins at `fromMs`. */
export interface MissedInHour {
  readonly fromMs: number
  readonly count: number
}

/** The pushes that the relay itself answered with 503 in the last day, and how many missed pushes they explain. */
export interface OwnRefusals {
  /** The periods in which the relay refused pushes, the newest first. */
  readonly spells: readonly RefusedPushes[]
  /** How many missed pushes were noticed in the last day. `explained`: how many of them were noticed while pushes were refused, or soon after. */
  readonly missed: number
  readonly explained: number
  /** Whether almost all missed pushes are explained, so that nobody need look for another cause. */
  readonly explainMost: boolean
}

const HOUR_MS = 3_600_000
/** How late a missed push may be noticed. The relay does not poll while the disk is full, and afterwards needs time to catch up. */
export const NOTICED_WITHIN_MS = 3 * HOUR_MS
/** The share of missed pushes from which `explainMost` is true. */
const MOST = 0.8

/** Counts the missed pushes that the relay's own refusals explain. Null: the refusals explain no missed push. */
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
