import type { Faults } from '../../../src/trial/sandbox/options.ts'
import { HOUR_MS } from '../../support/runner/constants.ts'

export type Action =
  | 'replace the shared key'
  | 'replace the key of the endpoint'
  | 'replace the at-rest key'
  | 'drop the old at-rest keys'
  | 'replace the key of tokens'
  | 'keep a backup'
  | 'erase after the backup'
  | 'restore'
  | 'the carrier renames a member'
  | 'upgrade and reprocess'

/** How long the simulation lasts, and how long the relay keeps data, all in days. */
export interface Lengths {
  readonly days: number
  /** The number of days at the end without new parcels or faults. */
  readonly quietDays: number
  readonly historyDays: number
  readonly feedDays: number
  readonly deliveriesDays: number
  readonly staleAfterDays: number
  readonly checkEveryDays: number
}

export const YEAR: Lengths = {
  days: 365,
  quietDays: 15,
  historyDays: 60,
  feedDays: 30,
  deliveriesDays: 10,
  staleAfterDays: 10,
  checkEveryDays: 30,
}

export const SIX_WEEKS: Lengths = {
  days: 42,
  quietDays: 8,
  historyDays: 12,
  feedDays: 8,
  deliveriesDays: 3,
  staleAfterDays: 4,
  checkEveryDays: 8,
}

/** When each action comes, as a fraction of the days with new parcels. Actions in a row come on consecutive days. */
const PLAN: readonly (readonly [at: number, ...days: readonly Action[]])[] = [
  [0.16, 'replace the shared key'],
  [0.2, 'replace the key of the endpoint'],
  [0.26, 'replace the key of tokens'],
  [0.34, 'keep a backup', 'replace the at-rest key', 'erase after the backup', 'restore'],
  [0.46, 'the carrier renames a member', 'replace the shared key', 'upgrade and reprocess'],
  [0.56, 'drop the old at-rest keys'],
  [0.7, 'keep a backup', 'replace the key of the endpoint', 'erase after the backup', 'restore'],
  [0.82, 'replace the at-rest key'],
  [0.9, 'replace the key of tokens'],
]

export function actionsOf({ days, quietDays }: Lengths): ReadonlyMap<number, Action> {
  return new Map(
    PLAN.flatMap(([at, ...actions]) => actions.map((action, nth) => [Math.round(at * (days - quietDays)) + nth, action] as const)),
  )
}

/** The faults of the carrier, one of them each day, in turn. */
const FAULTS: readonly Partial<Faults>[] = [
  {},
  { loss: 0.2 },
  { duplicates: 0.3 },
  { reorder: 6 },
  { delayMs: 30 },
  { unauthorized: 0.15 },
  { rateLimited: 0.15 },
  { serverErrors: 0.2 },
  { tokenLifetimeMs: HOUR_MS },
  { silence: true },
  { loss: 0.3, duplicates: 0.2, reorder: 5, serverErrors: 0.1 },
]

export function troubleOf(day: number, isQuiet: boolean) {
  if (isQuiet) return { faults: {}, mood: 'well', isKilled: false } as const
  const mood = day % 29 === 11 ? 'down' : day % 13 === 5 ? 'flaky' : 'well'
  return { faults: FAULTS[day % FAULTS.length] ?? {}, mood, isKilled: day % 17 === 8 } as const
}
