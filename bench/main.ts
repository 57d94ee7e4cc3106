import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { figuresTable, judge, observationsTable } from './figures.ts'
import { lookAtMachine, type Machine } from './machine.ts'
import { parseSettings, type Settings, USAGE } from './settings.ts'
import { slowMemoryShare } from './stillness.ts'
import type { Suite, SuiteReport } from './suite.ts'

/** All suites by name. A new suite needs a file and a line here. */
const SUITES: Readonly<Record<string, () => Promise<Suite>>> = {
  export: async () => (await import('./suites/export.ts')).exporting,
  insight: async () => (await import('./suites/insight.ts')).insight,
  ingest: async () => (await import('./suites/ingest.ts')).ingest,
  memory: async () => (await import('./suites/memory.ts')).memory,
  postgres: async () => (await import('./suites/postgres.ts')).postgresSuite,
  polling: async () => (await import('./suites/polling.ts')).polling,
  portal: async () => (await import('./suites/portal.ts')).portal,
  reads: async () => (await import('./suites/reads.ts')).reads,
  relay: async () => (await import('./suites/relay.ts')).relay,
  replicas: async () => (await import('./suites/replicas.ts')).replicas,
  report: async () => (await import('./suites/report.ts')).report,
  size: async () => (await import('./suites/size.ts')).size,
  starts: async () => (await import('./suites/starts.ts')).starts,
  stored: async () => (await import('./suites/stored.ts')).stored,
  years: async () => (await import('./suites/years.ts')).years,
}

/** A load average above this before the run means that others use the two cores. */
const BUSY = 0.5
const RESULTS = fileURLToPath(new URL('./results/', import.meta.url))
const say = (text: string) => void process.stderr.write(`${text}\n`)

/** Compiles as for a release, to a separate folder so that `dist` is left alone. */
function build(): string {
  const folder = join(RESULTS, 'dist')
  rmSync(folder, { recursive: true, force: true })
  execFileSync('npx', ['rolldown', '--config', '--dir', folder], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  // The relay reads its version from the manifest and shows the manual: both lie beside the compiled code as in an installed package.
  copyFileSync(fileURLToPath(new URL('../package.json', import.meta.url)), join(RESULTS, 'package.json'))
  cpSync(fileURLToPath(new URL('../docs', import.meta.url)), join(RESULTS, 'docs'), { recursive: true })
  return join(folder, 'main.js')
}

async function measureAll(settings: Settings, names: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'parcel-relay-bench-'))
  try {
    const machine = lookAtMachine(folder)
    const slowBefore = slowMemoryShare()
    const relayEntry = build()
    const reports: [string, SuiteReport][] = []
    for (const name of names) {
      say(`== ${name}`)
      const suite = await SUITES[name]?.()
      if (suite !== undefined)
        reports.push([name, await suite({ settings, relayEntry, folder: mkdtempSync(join(folder, `${name}-`)), say })])
    }
    report(settings, { ...machine, slowMemory: [slowBefore, slowMemoryShare()] }, reports)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Checks of the machine before and after the run. */
interface Seen extends Machine {
  readonly slowMemory: readonly [number, number]
}

function report(settings: Settings, machine: Seen, reports: readonly (readonly [string, SuiteReport])[]): void {
  const figures = reports.flatMap(([, of]) => of.figures)
  const { cpu, cores, memoryGb, node, sqlite, fileSystem, syncMs, loadAverage } = machine
  const lines = [
    `${cpu}, ${cores} cores, ${memoryGb} GB; Node ${node}, SQLite ${sqlite}; ${fileSystem}, a sync takes ${syncMs} ms; load before: ${loadAverage}, after: ${(loadavg()[0] ?? 0).toFixed(2)}`,
    `memory at less than half its speed: ${machine.slowMemory.map(percent).join(' of the time before, ')} after`,
    `medians of ${settings.rounds} rounds of ${settings.durationMs / 1000} s${settings.quick ? '; QUICK: small stores, not the figures that are wanted' : ''}`,
    ...(loadAverage > BUSY ? ['OTHERS ARE AT WORK ON THIS MACHINE: ratios suffer, latencies most'] : []),
    '',
    figuresTable(figures),
    '',
    observationsTable(reports.flatMap(([, of]) => of.observations)),
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
  const path = join(RESULTS, `${new Date().toISOString().replaceAll(':', '-')}.json`)
  mkdirSync(RESULTS, { recursive: true })
  const judged = reports.map(([suite, of]) => ({ suite, ...of, figures: of.figures.map((one) => ({ ...one, verdict: judge(one) })) }))
  writeFileSync(path, `${JSON.stringify({ machine, settings, suites: judged }, null, 2)}\n`)
  say(`written to ${path}`)
  if (figures.some((one) => judge(one) === 'MISS')) process.exitCode = 1
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}

/** Null: the settings are invalid, and the reason was printed. */
function readSettings(): Settings | null {
  try {
    const settings = parseSettings(process.argv.slice(2))
    const unknown = settings.suites.filter((name) => !Object.hasOwn(SUITES, name))
    if (unknown.length > 0) throw new RangeError(`no such suite: ${unknown.join(', ')}; there are ${Object.keys(SUITES).join(', ')}`)
    return settings
  } catch (error) {
    say(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`)
    return null
  }
}

const settings = readSettings()
if (settings === null) process.exitCode = 1
else await measureAll(settings, settings.suites.length === 0 ? Object.keys(SUITES) : settings.suites)
