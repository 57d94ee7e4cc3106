import { figure } from '../figures.ts'
import type { Figure, Observation } from '../suite.ts'
import type { Bars, Curve } from './plot.ts'
import { CURVE, NO_PUSHES, type Runs, SCARCE, SILENCE } from './runs.ts'
import { eveningSilence, type ScenarioRun, silenceFound, silencesImagined } from './scenarios.ts'
import type { Spread } from './staleness.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const LOWER = { unit: 'x', better: 'lower' } as const

/** The figures that gate the cadence. */
export function figuresOf(runs: Runs, claimMs: number): readonly Figure[] {
  const silent = silenceFound(runs.of(SILENCE).relay, eveningSilence())
  const minutesOf = (ms: number | undefined) => (ms ?? Number.NaN) / MINUTE_MS
  const imagined = runs.all.reduce((sum, run) => sum + silencesImagined(run), 0)
  return [
    figure('staleness of lost entries / the fixed poller with as many calls', [againstFixed(runs.of('loss 5 %'))], {
      ...LOWER,
      must: 0.7,
      aim: 0.5,
    }),
    figure('the same with memoryless scans', [againstFixed(runs.of('memoryless, loss 5 %'))], { ...LOWER, must: 1.1, aim: 1 }),
    figure('calls with no push lost / without pushes', [runs.of('no push lost').relay.calls / runs.of(NO_PUSHES).relay.calls], {
      ...LOWER,
      must: 0.35,
      aim: 0.2,
    }),
    figure('silence noticed, polls after the grace time', [silent?.pollsAfterGrace ?? Number.NaN], { ...LOWER, must: 30, aim: 10 }),
    figure('silence noticed, minutes', [minutesOf(silent?.noticedAfterMs)], LOWER),
    figure('trusted again, minutes', [minutesOf(silent?.trustedAfterMs)], LOWER),
    figure('silences told while there was none, in all runs', [imagined], { ...LOWER, must: 0 }),
    // Only the run with pushes must reach a figure. For the one without, the figure below gives the lower bound of a poller that knows all rates.
    ...SCARCE.map(({ wanted }) =>
      figure(`${wanted}, a tenth of the calls: staleness / first come first served`, [byWorth(runs, wanted)], {
        ...LOWER,
        ...(wanted === NO_PUSHES ? {} : { must: 0.7, aim: 0.5 }),
      }),
    ),
    figure(`${NO_PUSHES}, a tenth of the calls: the least possible / first come first served`, [leastByWorth(runs)], LOWER),
    figure('a pass that claims a thousandth of the watched', [claimMs], { unit: 'ms', better: 'lower', must: 20, aim: 5 }),
  ]
}

/** Reports one run. */
export function observe({ scenario, parcels, relay, fixed, oracleMs }: ScenarioRun): Observation {
  return {
    name: scenario.name,
    facts: {
      'calls/parcel': (relay.calls / parcels).toFixed(2),
      'all: mean p50 p95 p99 min': spread(relay.staleness.all),
      'lost: mean p50 p95 p99 min': spread(relay.staleness.lost),
      'fixed lost': spread(fixed.staleness.lost),
      'fixed interval h': (fixed.intervalMs / HOUR_MS).toFixed(2),
      'oracle min': minutes(oracleMs),
    },
  }
}

/** Staleness as a fraction of the simpler poller's. */
export function barsOf(runs: Runs): readonly Bars[] {
  const fixedBar = (name: string, label: string) => {
    const run = runs.of(name)
    return { label, value: againstFixed(run), mark: run.oracleMs / run.fixed.staleness.lost.meanMs }
  }
  return [
    {
      title: 'Mean staleness of entries whose push was lost, as a part of the fixed poller’s with as many calls',
      mark: 'knowing the future',
      bars: [
        fixedBar('loss 5 %', '5 % of pushes lost'),
        fixedBar('loss 20 %', '20 % lost'),
        fixedBar(NO_PUSHES, 'no pushes at all'),
        fixedBar(SILENCE, '5 %, and six hours of silence'),
        fixedBar('carrier out for 6 h, loss 5 %', '5 %, and the carrier out for six hours'),
        fixedBar('memoryless, loss 5 %', '5 %, scans at any hour (a control)'),
      ],
    },
    {
      title: 'A tenth of the calls that are wanted: mean staleness of all entries, as a part of first come, first served',
      mark: 'the least that is possible',
      bars: [
        { label: '5 % of pushes lost', value: byWorth(runs, 'loss 5 %'), mark: null },
        { label: 'no pushes at all', value: byWorth(runs, NO_PUSHES), mark: leastByWorth(runs) },
      ],
    },
  ]
}

/** Staleness against calls, for scaled intervals. */
export function curvesOf(runs: Runs): readonly Curve[] {
  const family = CURVE.map(runs.of)
  const curve = (name: string, color: string, meanMs: (run: ScenarioRun) => number): Curve => {
    const points = family.map((run) => [run.relay.calls / run.parcels, meanMs(run) / MINUTE_MS] as const)
    return { name, color, points: points.sort(([a], [b]) => a - b) }
  }
  return [
    curve('fixed interval', '#b45309', (run) => run.fixed.staleness.lost.meanMs),
    curve('the relay', '#1d4ed8', (run) => run.relay.staleness.lost.meanMs),
    curve('knowing the future', '#15803d', (run) => run.oracleMs),
  ]
}

function againstFixed({ relay, fixed }: ScenarioRun): number {
  return relay.staleness.lost.meanMs / fixed.staleness.lost.meanMs
}

function byWorth(runs: Runs, wanted: string): number {
  return runs.of(`${wanted}, a tenth of the calls by worth`).relay.staleness.all.meanMs / firstComeMs(runs, wanted)
}

function leastByWorth(runs: Runs): number {
  return runs.leastMs / firstComeMs(runs, NO_PUSHES)
}

function firstComeMs(runs: Runs, wanted: string): number {
  return runs.of(`${wanted}, a tenth of the calls, first come`).relay.staleness.all.meanMs
}

function spread({ meanMs, p50Ms, p95Ms, p99Ms }: Spread): string {
  return [meanMs, p50Ms, p95Ms, p99Ms].map(minutes).join(' ')
}

function minutes(ms: number): string {
  return (ms / MINUTE_MS).toFixed(1)
}
