import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { figure, figuresTable, observationsTable } from '../figures.ts'
import type { Figure, Observation, SuiteReport } from '../suite.ts'
import { measureClaim } from './claim-pass.ts'
import { type Curve, plotCurves } from './plot.ts'
import { eveningSilence, runScenario, type Scenario, type ScenarioRun, silenceFound, silencesImagined, tenthOfWanted } from './scenarios.ts'
import type { Spread } from './staleness.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const SELF = fileURLToPath(import.meta.url)
const PLOT = fileURLToPath(new URL('../results/polling.svg', import.meta.url))
const OUTAGE = { fromMs: Date.UTC(2026, 9, 7, 9), toMs: Date.UTC(2026, 9, 7, 15) }
const SCALES = [0.5, 2, 4]

/** What is run first; the scarce runs need to know what the one without pushes wanted. */
const SCENARIOS: readonly Scenario[] = [
  { name: 'no pushes', rhythm: 'daily', loss: 1 },
  { name: 'loss 20 %', rhythm: 'daily', loss: 0.2 },
  { name: 'memoryless, loss 5 %', rhythm: 'memoryless', loss: 0.05 },
  { name: 'loss 5 %', rhythm: 'daily', loss: 0.05 },
  { name: 'no push lost', rhythm: 'daily', loss: 0 },
  { name: 'pushes silent for 6 h, else loss 5 %', rhythm: 'daily', loss: 0.05, silence: eveningSilence() },
  { name: 'carrier out for 6 h, loss 5 %', rhythm: 'daily', loss: 0.05, outage: OUTAGE },
  ...SCALES.map((scale): Scenario => ({ name: `loss 5 %, intervals x${scale}`, rhythm: 'daily', loss: 0.05, scale })),
]
/** What is run with a tenth of the calls that were wanted. */
const SCARCE: readonly { readonly wanted: string; readonly rhythm: 'daily'; readonly loss: number }[] = [
  { wanted: 'loss 5 %', rhythm: 'daily', loss: 0.05 },
  { wanted: 'no pushes', rhythm: 'daily', loss: 1 },
]
const EXPLAINED =
  'lost: entries whose push was lost; fixed: the poller with one interval and as many calls; oracle: the one that knows the future'

export interface PollingSettings {
  readonly parcels: number
  readonly watched: number
}

/** Measures the polling brain: the relay's own flows and store on simulated time against other pollers, and a pass over a large store. */
export async function measurePolling({ parcels, watched }: PollingSettings, say: (text: string) => void): Promise<SuiteReport> {
  const runs = new Map<string, ScenarioRun>()
  const runAll = async (scenarios: readonly Scenario[]) => {
    const waiting = [...scenarios]
    const lane = async () => {
      for (let scenario = waiting.shift(); scenario !== undefined; scenario = waiting.shift()) {
        const run = await runApart(scenario, parcels)
        runs.set(scenario.name, run)
        say(`${scenario.name}: ${(run.relay.tookMs / 1000).toFixed(0)} s`)
      }
    }
    await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, lane))
  }
  await runAll(SCENARIOS)
  await runAll(
    SCARCE.flatMap(({ wanted, rhythm, loss }) => {
      const scarce = { rhythm, loss, callsPerMinute: tenthOfWanted(of(runs, wanted).relay) }
      return [
        { ...scarce, name: `${wanted}, a tenth of the calls by worth` },
        { ...scarce, name: `${wanted}, a tenth of the calls, first come`, firstCome: true },
      ]
    }),
  )
  const claim = await measureClaim(watched)
  say(`a pass over ${watched} watched parcels claimed ${claim.claimed}`)
  writePlot(runs)
  return { figures: figuresOf(runs, claim.medianMs), observations: [...runs.values()].map(observe) }
}

function figuresOf(runs: ReadonlyMap<string, ScenarioRun>, claimMs: number): readonly Figure[] {
  const againstFixed = (name: string) => of(runs, name).relay.staleness.lost.meanMs / of(runs, name).fixed.staleness.lost.meanMs
  const silent = silenceFound(of(runs, 'pushes silent for 6 h, else loss 5 %').relay, eveningSilence())
  const byWorth = (wanted: string) =>
    of(runs, `${wanted}, a tenth of the calls by worth`).relay.staleness.all.meanMs /
    of(runs, `${wanted}, a tenth of the calls, first come`).relay.staleness.all.meanMs
  const lower = { unit: 'x', better: 'lower' } as const
  const ms = (value: number | undefined) => (value ?? Number.NaN) / MINUTE_MS
  return [
    figure('staleness of lost entries / the fixed poller with as many calls', [againstFixed('loss 5 %')], {
      ...lower,
      must: 0.7,
      aim: 0.5,
    }),
    figure('the same with memoryless scans', [againstFixed('memoryless, loss 5 %')], { ...lower, must: 1.1, aim: 1 }),
    figure('calls with no push lost / without pushes', [of(runs, 'no push lost').relay.calls / of(runs, 'no pushes').relay.calls], {
      ...lower,
      must: 0.35,
      aim: 0.2,
    }),
    figure('silence noticed, polls after the grace time', [silent?.pollsAfterGrace ?? Number.NaN], { ...lower, must: 30, aim: 10 }),
    figure('silence noticed, minutes', [ms(silent?.noticedAfterMs)], lower),
    figure('trusted again, minutes', [ms(silent?.trustedAfterMs)], lower),
    figure('silences told while there was none, in all runs', [[...runs.values()].reduce((sum, run) => sum + silencesImagined(run), 0)], {
      ...lower,
      must: 0,
    }),
    ...SCARCE.map(({ wanted }) =>
      figure(`${wanted}, a tenth of the calls: staleness / first come first served`, [byWorth(wanted)], { ...lower, must: 0.7, aim: 0.5 }),
    ),
    figure('a pass that claims a thousandth of the watched', [claimMs], { unit: 'ms', better: 'lower', must: 20, aim: 5 }),
  ]
}

function observe({ scenario, parcels, relay, fixed, oracleMs }: ScenarioRun): Observation {
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

function writePlot(runs: ReadonlyMap<string, ScenarioRun>): void {
  const family = ['loss 5 %', ...SCALES.map((scale) => `loss 5 %, intervals x${scale}`)].map((name) => of(runs, name))
  const curve = (name: string, color: string, meanMs: (run: ScenarioRun) => number): Curve => {
    const points = family.map((run) => [run.relay.calls / run.parcels, meanMs(run) / MINUTE_MS] as const)
    return { name, color, points: points.sort(([a], [b]) => a - b) }
  }
  const svg = plotCurves('How late lost entries are known, one push in twenty lost', [
    curve('fixed interval', '#c0392b', (run) => run.fixed.staleness.lost.meanMs),
    curve('parcel relay', '#2471a3', (run) => run.relay.staleness.lost.meanMs),
    curve('knowing the future', '#229954', (run) => run.oracleMs),
  ])
  mkdirSync(new URL('../results/', import.meta.url), { recursive: true })
  writeFileSync(PLOT, svg)
}

function of(runs: ReadonlyMap<string, ScenarioRun>, name: string): ScenarioRun {
  const run = runs.get(name)
  if (run === undefined) throw new Error(`nothing was run for "${name}"`)
  return run
}

function spread({ meanMs, p50Ms, p95Ms, p99Ms }: Spread): string {
  return [meanMs, p50Ms, p95Ms, p99Ms].map(minutes).join(' ')
}

function minutes(ms: number): string {
  return (ms / MINUTE_MS).toFixed(1)
}

/** In a process of its own, so that two run at once. */
async function runApart(scenario: Scenario, parcels: number): Promise<ScenarioRun> {
  const args = [SELF, '--one', JSON.stringify(scenario), String(parcels)]
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 64 * 1024 * 1024 })
  return JSON.parse(stdout)
}

/** `--quick`: a twentieth of the parcels, to see that it works. */
async function run(args: readonly string[]): Promise<void> {
  const quick = args.includes('--quick')
  const settings = quick ? { parcels: 500, watched: 50_000 } : { parcels: 10_000, watched: 1_000_000 }
  const { figures, observations } = await measurePolling(settings, (text) => void process.stderr.write(`${text}\n`))
  const size = `${settings.parcels} parcels, ${settings.watched} watched in the last figure${quick ? '; QUICK: not the figures that are wanted' : ''}`
  process.stdout.write(`${size}\n\n${figuresTable(figures)}\n\n${observationsTable(observations)}\n${EXPLAINED}\nplot: ${PLOT}\n`)
}

if (process.argv[1] === SELF) {
  const [mode, scenario = '', parcels] = process.argv.slice(2)
  if (mode === '--one') process.stdout.write(JSON.stringify(await runScenario(JSON.parse(scenario), Number(parcels))))
  else await run(process.argv.slice(2))
}
