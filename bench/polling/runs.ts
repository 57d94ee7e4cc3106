import { execFile } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import { leastPossibleMeanMs } from './least-possible.ts'
import { loadLifecycles } from './lifecycles.ts'
import { eveningSilence, type Scenario, type ScenarioRun, tenthOfWanted } from './scenarios.ts'

const OUTAGE = { fromMs: Date.UTC(2026, 9, 7, 9), toMs: Date.UTC(2026, 9, 7, 15) }
const SCALES = [0.5, 2, 4]
const scaled = (scale: number) => `loss 5 %, intervals x${scale}`

export const NO_PUSHES = 'no pushes'
export const SILENCE = 'pushes silent for 6 h, else loss 5 %'
/** The same scenario with scaled intervals. */
export const CURVE: readonly string[] = ['loss 5 %', ...SCALES.map(scaled)]

/** Runs first, because the scarce runs need its demand for calls. */
const SCENARIOS: readonly Scenario[] = [
  { name: NO_PUSHES, scanRate: 'daily', loss: 1 },
  { name: 'loss 20 %', scanRate: 'daily', loss: 0.2 },
  { name: 'memoryless, loss 5 %', scanRate: 'memoryless', loss: 0.05 },
  { name: 'loss 5 %', scanRate: 'daily', loss: 0.05 },
  { name: 'no push lost', scanRate: 'daily', loss: 0 },
  { name: SILENCE, scanRate: 'daily', loss: 0.05, silence: eveningSilence() },
  { name: 'carrier out for 6 h, loss 5 %', scanRate: 'daily', loss: 0.05, outage: OUTAGE },
  ...SCALES.map((scale): Scenario => ({ name: scaled(scale), scanRate: 'daily', loss: 0.05, scale })),
]
/** Runs with a tenth of the calls that the unlimited run made. */
export const SCARCE: readonly { readonly wanted: string; readonly loss: number }[] = [
  { wanted: 'loss 5 %', loss: 0.05 },
  { wanted: NO_PUSHES, loss: 1 },
]

export interface Runs {
  readonly all: readonly ScenarioRun[]
  /** Finds a run by the name of its scenario. */
  readonly of: (name: string) => ScenarioRun
  /** Lower bound on the mean staleness without pushes and with a tenth of the calls. */
  readonly leastMs: number
}

/** Runs all scenarios, one per core and at most two at once. `self`: the file that runs a single one. */
export async function runAll(self: string, parcels: number, say: (text: string) => void): Promise<Runs> {
  const runs = new Map<string, ScenarioRun>()
  const of = (name: string): ScenarioRun => {
    const run = runs.get(name)
    if (run === undefined) throw new Error(`nothing was run for "${name}"`)
    return run
  }
  const runEach = async (scenarios: readonly Scenario[]) => {
    const waiting = [...scenarios]
    const lane = async () => {
      for (let scenario = waiting.shift(); scenario !== undefined; scenario = waiting.shift()) {
        const run = await runApart(self, scenario, parcels)
        runs.set(scenario.name, run)
        say(`${scenario.name}: ${(run.relay.tookMs / 1000).toFixed(0)} s`)
      }
    }
    await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, lane))
  }
  await runEach(SCENARIOS)
  await runEach(
    SCARCE.flatMap(({ wanted, loss }): readonly Scenario[] => {
      const scarce = { scanRate: 'daily', loss, callsPerMinute: tenthOfWanted(of(wanted).relay) } as const
      return [
        { ...scarce, name: `${wanted}, a tenth of the calls by worth` },
        { ...scarce, name: `${wanted}, a tenth of the calls, first come`, firstCome: true },
      ]
    }),
  )
  const leastMs = leastPossibleMeanMs(loadLifecycles('daily', parcels), tenthOfWanted(of(NO_PUSHES).relay))
  return { all: [...runs.values()], of, leastMs }
}

/** Runs a scenario in its own process, so that two run in parallel. */
async function runApart(self: string, scenario: Scenario, parcels: number): Promise<ScenarioRun> {
  const args = [self, '--one', JSON.stringify(scenario), String(parcels)]
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 64 * 1024 * 1024 })
  return JSON.parse(stdout)
}
