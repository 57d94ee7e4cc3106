import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { figuresTable, observationsTable } from '../figures.ts'
import type { SuiteReport } from '../suite.ts'
import { measureClaim } from './claim-pass.ts'
import { plot } from './plot.ts'
import { barsOf, curvesOf, figuresOf, observe } from './report.ts'
import { runAll } from './runs.ts'
import { runScenario } from './scenarios.ts'

const SELF = fileURLToPath(import.meta.url)
/** The plot in the README. Only a full run writes it. */
const PLOT = fileURLToPath(new URL('../../docs/polling.svg', import.meta.url))
const QUICK_PLOT = fileURLToPath(new URL('../results/polling.svg', import.meta.url))
const EXPLAINED =
  'lost: entries whose push was lost; fixed: the poller with one interval and as many calls; oracle: the one that knows the future'
const FULL = { parcels: 10_000, watched: 1_000_000, plotPath: PLOT }
const QUICK = { parcels: 500, watched: 50_000, plotPath: QUICK_PLOT }

/** Measures the cadence (the relay's own flows and store on simulated time) against other pollers, and a pass over a large store. */
export async function measurePolling(quick: boolean, say: (text: string) => void): Promise<SuiteReport> {
  const { parcels, watched, plotPath } = quick ? QUICK : FULL
  const runs = await runAll(SELF, parcels, say)
  const claim = await measureClaim(watched)
  say(`a pass over ${watched} watched parcels claimed ${claim.claimed}`)
  writeFileSync(plotPath, plot({ parcels, bars: barsOf(runs), curves: curvesOf(runs) }))
  say(`plot: ${plotPath}`)
  return { figures: figuresOf(runs, claim.medianMs), observations: runs.all.map(observe) }
}

/** `--quick` uses a twentieth of the parcels, as a smoke test. */
async function run(quick: boolean): Promise<void> {
  const { figures, observations } = await measurePolling(quick, (text) => void process.stderr.write(`${text}\n`))
  const size = quick ? 'QUICK: not the figures that are wanted' : `${FULL.parcels} parcels, ${FULL.watched} watched in the last figure`
  process.stdout.write(`${size}\n\n${figuresTable(figures)}\n\n${observationsTable(observations)}\n${EXPLAINED}\n`)
}

if (process.argv[1] === SELF) {
  const [mode, scenario = '', parcels] = process.argv.slice(2)
  if (mode === '--one') process.stdout.write(JSON.stringify(await runScenario(JSON.parse(scenario), Number(parcels))))
  else await run(process.argv.includes('--quick'))
}
