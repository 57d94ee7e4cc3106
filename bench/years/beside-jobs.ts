import { equal, ok } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { memberOf, textOf } from '../../test/support/runner/members.ts'
import { figure } from '../figures.ts'
import { EVENTS_PER_PARCEL } from '../load/event.ts'
import { startGenerator } from '../load/generator-process.ts'
import { warmUp } from '../measure.ts'
import { SHARED_KEY } from '../servers/relay-config.ts'
import { copyPastStore } from '../stores/past.ts'
import type { Bench, Figure, SuiteReport } from '../suite.ts'
import { type OperatedRelay, startOperatedRelay, stepOf } from './operated-relay.ts'
import { createPushing, longestOf, observeWindows, type Pushing, type PushWindow, p50Of } from './push-windows.ts'

/** Parcels of the load, apart from those of the store. */
const FIRST_PARCEL = 10_000_000
/** At most this many windows without retention are compared with a pass. */
const CONTROL_WINDOWS_MAX = 120

const RATIO = { unit: 'x', better: 'lower', must: 2, aim: 1.3 } as const

/** Measures how long pushes take during a backup, a rebuild and a retention pass, compared with none, and how long a rebuild takes alone. */
export async function measureBesideJobs(bench: Bench): Promise<SuiteReport> {
  const { settings, relayEntry, say } = bench
  const events = settings.scale.storedParcels * EVENTS_PER_PARCEL
  const folder = mkdtempSync(join(bench.folder, 'jobs-'))
  const parcels = await copyPastStore({ parcels: settings.scale.storedParcels, keep: settings.keep, say }, join(folder, 'relay.db'))
  const relay = await startOperatedRelay(relayEntry, folder)
  const load = startGenerator()
  try {
    const rebuild = await timeRebuild(relay, { parcels, events, say })
    await load.prepare({ kind: 'stamped', firstParcel: FIRST_PARCEL, sharedKey: SHARED_KEY })
    await warmUp(load, relay.port, settings.warmUpMs)
    const pushing = createPushing(load, relay.port)
    const rounds = await takeTurns(bench, relay, pushing)
    const retention = await measureRetention(bench, relay, pushing)
    const of = (what: string) => `years: push p50 during ${what} / without, ${events} events`
    return {
      figures: [
        figure(
          of('a backup'),
          rounds.map((round) => p50Of(round.backup) / p50Of(round.beforeBackup)),
          RATIO,
        ),
        figure(
          of('a rebuild'),
          rounds.map((round) => p50Of(round.rebuild) / p50Of(round.beforeRebuild)),
          RATIO,
        ),
        figure(of('retention'), [p50Of(retention.pass) / p50Of(retention.control)], RATIO),
        rebuild,
        stallOf(retention),
      ],
      observations: observeWindows([...rounds.flatMap((round) => Object.values(round).flat()), ...retention.control, ...retention.pass]),
    }
  } finally {
    await relay.stop()
    await load.stop()
    rmSync(folder, { recursive: true })
  }
}

interface Timed extends Pick<Bench, 'say'> {
  readonly parcels: number
  readonly events: number
}

/** Rebuilds the whole store while the relay does nothing else. */
async function timeRebuild(relay: OperatedRelay, { parcels, events, say }: Timed): Promise<Figure> {
  const startMs = performance.now()
  const job = await (await relay.order('/relay/rebuild')).done()
  const seconds = (performance.now() - startMs) / 1000
  const report = memberOf(job, 'report')
  equal(memberOf(report, 'parcels'), parcels, 'every parcel was compared')
  equal(memberOf(report, 'fromSightings'), 0, 'with its bytes')
  equal(memberOf(report, 'differing'), 0, 'and nothing differs')
  equal(textOf(report, 'stored'), textOf(report, 'derived'))
  say(`rebuilt in ${seconds.toFixed(1)} s`)
  return figure(`years: rebuild of ${events} events`, [seconds], { unit: 's', better: 'lower', must: 120, aim: 30 })
}

interface Round {
  readonly beforeBackup: readonly PushWindow[]
  readonly backup: readonly PushWindow[]
  readonly beforeRebuild: readonly PushWindow[]
  readonly rebuild: readonly PushWindow[]
}

/** In each round measures pushes alone, during a whole backup, alone again, and during a part of a rebuild. */
async function takeTurns({ settings, say }: Bench, relay: OperatedRelay, pushing: Pushing): Promise<readonly Round[]> {
  const count = Math.ceil(settings.durationMs / 1000)
  const rounds: Round[] = []
  for (let nth = 0; nth < settings.rounds; nth++) {
    const beforeBackup = await pushing.windows(count, 'alone')
    const backing = await relay.order('/relay/backups', { name: `round-${nth}` })
    const backup = await pushing.beside(backing, (job) => `beside a backup, ${stepOf(job)}`)
    await backing.done()
    const beforeRebuild = await pushing.windows(count, 'alone')
    const rebuilding = await relay.order('/relay/rebuild?dryRun=true')
    const rebuild = await pushing.beside(rebuilding, () => 'beside a rebuild', count)
    await rebuilding.cancel()
    for (const windows of [backup, rebuild]) ok(windows.length > 0, 'pushes were measured beside the job')
    rounds.push({ beforeBackup, backup, beforeRebuild, rebuild })
    const p50s = [beforeBackup, backup, beforeRebuild, rebuild].map((windows) => p50Of(windows).toFixed(2))
    say(`p50 alone, beside a backup of ${backup.length} s, alone, beside a rebuild: ${p50s.join(', ')} ms`)
  }
  return rounds
}

interface RetentionMeasured {
  /** Windows without retention, together as long as the pass. Half come before it and half after it. */
  readonly control: readonly PushWindow[]
  readonly pass: readonly PushWindow[]
  readonly removed: number
}

/** Measures pushes during a whole pass that removes nearly all of the store. */
async function measureRetention({ settings, say }: Bench, relay: OperatedRelay, pushing: Pushing): Promise<RetentionMeasured> {
  const count = Math.ceil(settings.durationMs / 1000)
  const before = await pushing.windows(count, 'without retention')
  const pruning = await relay.order('/relay/retention')
  const pass = await pushing.beside(pruning, () => `beside retention, ${stageIn(relay.storePath)}`)
  await pruning.done()
  const removed = Object.values(lastPassIn(relay.storePath)).reduce((sum, of) => sum + of, 0)
  ok(pass.length > 0, 'pushes were measured beside retention')
  const more = Math.min(CONTROL_WINDOWS_MAX, pass.length) - count
  const after = await pushing.windows(Math.max(count, more), 'without retention')
  say(`retention removed ${removed} rows in ${pass.length} s: ${JSON.stringify(lastPassIn(relay.storePath))}`)
  return { control: [...before, ...after], pass, removed }
}

function stallOf({ control, pass, removed }: RetentionMeasured): Figure {
  const name = `years: longest wait beside retention of ${removed} rows, beyond the longest without`
  return figure(name, [Math.max(0, longestOf(pass) - longestOf(control))], { unit: 'ms', better: 'lower', must: 25 })
}

/** Returns the current stage of the pass. Reads it from the store, because the API would also count what is to be removed. */
function stageIn(storePath: string): string {
  return textOf(memberOf(retentionIn(storePath), 'pass'), 'stage') ?? 'over'
}

/** Returns how many rows of each kind the last pass has removed. */
function lastPassIn(storePath: string): Readonly<Record<string, number>> {
  const removed = memberOf(memberOf(retentionIn(storePath), 'last'), 'removed')
  return Object.fromEntries(Object.entries(removed ?? {}).map(([kind, count]) => [kind, Number(count)]))
}

function retentionIn(storePath: string): unknown {
  const db = new Database(storePath, { readonly: true, fileMustExist: true })
  try {
    const value = db.prepare<[], Buffer>("SELECT value FROM setting WHERE name = 'retention'").pluck().get()
    return value === undefined ? null : JSON.parse(value.toString())
  } finally {
    db.close()
  }
}
