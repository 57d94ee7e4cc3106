import type { CadencePolicy } from '../../src/domain/polling/cadence.ts'
import { type FixedRun, matchFixedPoller } from './fixed-poller.ts'
import { type Lifecycle, loadLifecycles, type RhythmName } from './lifecycles.ts'
import { drawPushes, isWithin, type Pushes, type Span } from './losses.ts'
import { oracleMeanMs } from './oracle.ts'
import { GRACE_MS, type RelayRun, runRelay } from './relay-run.ts'

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
const DAY_MS = 24 * HOUR_MS
const SEED = 7

/** The cadence of config/example.yaml: the one an operator gets who sets nothing. */
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
  /** Intervals are the default's times this. */
  readonly scale?: number
  readonly callsPerMinute?: number
  readonly firstCome?: boolean
}

export interface ScenarioRun {
  readonly scenario: Scenario
  readonly parcels: number
  readonly relay: RelayRun
  readonly fixed: FixedRun
  /** Mean staleness of lost entries by the poller that knows the future, with as many calls. */
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

/** A tenth of the calls a minute that were made while nothing held them back, over the time in which nearly all were. */
export function tenthOfWanted({ calls, callsByMinute }: RelayRun): number {
  const minutes = callsByMinute.findIndex((made) => made >= 0.99 * calls)
  return calls / Math.max(1, minutes) / 10
}

export interface SilenceFound {
  /** From its beginning. */
  readonly noticedAfterMs: number
  /** Polls between the grace time after its beginning and the notice; 0: noticed before. */
  readonly pollsAfterGrace: number
  /** From its end until pushes were trusted again. */
  readonly trustedAfterMs: number
}

/** When a silence was noticed, and when it was forgiven; null: it was not. */
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

/** How often a silence was told while there was none. */
export function silencesImagined({ scenario: { silence }, relay }: ScenarioRun): number {
  return relay.healthChanges.filter(({ atMs, health }) => health === 'silent' && !isWithin(silence ?? null, atMs)).length
}
