import type { WatchdogRule } from '../../../src/insight/watchdogs/watchdog.rules.ts'

/** Makes a rule of watchdogs: no scan for 48 hours after `Ingested`, unless told otherwise. */
export function aRule(given: Partial<Omit<WatchdogRule, 'when'>> & { readonly when?: Partial<WatchdogRule['when']> } = {}): WatchdogRule {
  const { when, ...rest } = given
  const any = { status: null, detailedStatus: null, distributionType: null, label: null }
  return {
    name: 'no-scan',
    notWithinMs: 48 * 3_600_000,
    notBy: null,
    until: null,
    past: true,
    ...rest,
    when: { ...any, ...(when ?? { status: ['Ingested'] }) },
  }
}
