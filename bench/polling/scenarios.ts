import type { CadencePolicy } from '../../src/core/domain/polling/cadence.ts'
import { type FixedRun, matchFixedPoller } from './fixed-poller.ts'
import { type Lifecycle, loadLifecycles, type RhythmName } from './lifecycles.ts'
import { drawPushes, isWithin, type Pushes, type Span } from './losses.ts'
import { oracleMeanMs } from './oracle.ts'
import { GRACE_MS, type RelayRun, runRelay } from './relay-run.ts'

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
const DAY_MS = 24 * HOUR_MS
const SEED = 7

/** The default cadence, as in config/example.yaml. */
export const DEFAULTS: CadencePolicy = {
  byStatusMs: { Created: 2 * HOUR_MS, Ingested: HOUR_MS, DeliveryStarted: HOUR_MS / 4 },
  defaultMs: HOUR_MS,
  whenPushIsHealthy: 4,
  tailMs: [HOUR_MS, DAY_MS, 3 * DAY_MS],
  staleAfterMs: 30 * DAY_MS,
}

export interface Scenario {
  readonly name: string
  readonly scanRate: RhythmName
  readonly loss: number
  readonly silence?: Span
  readonly outage?: Span
  /** Factor applied to the default intervals. */
  readonly scale?: number
  readonly callsPerMinute?: number
  readonly firstCome?: boolean
}

export interface ScenarioRun {
  readonly scenario: Scenario
  readonly parcels: number
  readonly relay: RelayRun
  readonly fixed: FixedRun
  /** Mean staleness of lost entries of the oracle with as many calls. */
  readonly oracleMs: number
}

/** Runs one scenario: the relay, then the fixed poller and the oracle with as many calls and the same losses. */
export async function runScenario(scenario: Scenario, parcels: number): Promise<ScenarioRun> {
  const lifecycles = loadLifecycles(scenario.scanRate, parcels)
  const pushes = drawPushes(lifecycles, scenario.loss, scenario.silence ?? null, SEED)
  const { outage, callsPerMinute, firstCome, scale } = scenario
  const relay = await runRelay(lifecycles, pushes, {
    cadence: scaled(scale ?? 1),
    ...(outage === undefined ? {} : { outage }),
    ...(callsPerMinute === undefined ? {} : { callsPerMinute }),
    ...(firstCome === undefined ? {} : { firstCome }),
  })
  return { scenario, parcels, relay, ...compare(lifecycles, pushes, relay.calls) }
}

function compare(lifecycles: readonly Lifecycle[], pushes: Pushes, calls: number) {
  return { fixed: matchFixedPoller(lifecycles, pushes, calls), oracleMs: oracleMeanMs(lifecycles, pushes, calls) }
}

function scaled(scale: number): CadencePolicy {
  const byStatusMs = Object.fromEntries(Object.entries(DEFAULTS.byStatusMs).map(([status, ms]) => [status, ms * scale]))
  return { ...DEFAULTS, byStatusMs, defaultMs: DEFAULTS.defaultMs * scale }
}

/** Six hours in the evening of the third day, when parcels are on the road and pushes come every few seconds. */
export function eveningSilence(): Span {
  const fromMs = Date.UTC(2026, 9, 7, 17)
  return { fromMs, toMs: fromMs + 6 * HOUR_MS }
}

/** A tenth of the calls per minute that the unlimited run made, averaged over the time in which it made nearly all of them. */
export function tenthOfWanted({ calls, callsByMinute }: RelayRun): number {
  const minutes = callsByMinute.findIndex((made) => made >= 0.99 * calls)
  return calls / Math.max(1, minutes) / 10
}

export interface SilenceFound {
  /** Time from the start of the silence until it was noticed. */
  readonly noticedAfterMs: number
  /** Polls between the end of the grace period and the notice; 0: noticed earlier. */
  readonly pollsAfterGrace: number
  /** Time from the end of the silence until pushes were trusted again. */
  readonly trustedAfterMs: number
}

/** When a silence was noticed and when pushes were trusted again; null: never noticed. */
export function silenceFound({ healthChanges, callsByMinute, startMs }: RelayRun, { fromMs, toMs }: Span): SilenceFound | null {
  const noticed = healthChanges.find(({ atMs, health }) => atMs >= fromMs && health === 'silent')
  const trusted = healthChanges.find(({ atMs, health }) => atMs >= toMs && health === 'healthy')
  if (noticed === undefined || trusted === undefined) return null
  const callsAtGrace = callsByMinute[Math.floor((fromMs + GRACE_MS - startMs) / MINUTE_MS) - 1] ?? 0
  return {
    noticedAfterMs: noticed.atMs - fromMs,
    pollsAfterGrace: Math.max(0, noticed.calls - callsAtGrace),
    trustedAfterMs: trusted.atMs - toMs,
  }
}

/** Number of false alarms: silences reported while there was none. */
export function silencesImagined({ scenario: { silence }, relay }: ScenarioRun): number {
  return relay.healthChanges.filter(({ atMs, health }) => health === 'silent' && !isWithin(silence ?? null, atMs)).length
}
