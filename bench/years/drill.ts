import { deepEqual, equal } from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { figure } from '../figures.ts'
import { EVENTS_PER_PARCEL, trackingId } from '../load/event.ts'
import { startGenerator } from '../load/generator-process.ts'
import { SHARED_KEY } from '../servers/relay-config.ts'
import { copyPastStore } from '../stores/past.ts'
import type { Bench, SuiteReport } from '../suite.ts'
import { compareStores, parcelIdIn, rowsOfParcel } from './compare-stores.ts'
import { backupsIn, type OperatedRelay, startOperatedRelay } from './operated-relay.ts'

/** This part of the store is pushed after the backup, and lost again by the restore. */
const MORE = 1 / 100
const MORE_FIRST_PARCEL = 10_000_000
const CONNECTIONS = 64
/** The parcel that is erased after the backup. */
const ERASED = 3
/** One in this many parcels is asked for before and after. */
const ASKED = 20

/** Backs up a full store, pushes more, erases a parcel, restores the backup, and compares everything. */
export async function drill(bench: Bench): Promise<SuiteReport> {
  const { settings, relayEntry, say } = bench
  const parcels = settings.scale.storedParcels
  const events = parcels * EVENTS_PER_PARCEL
  const folder = mkdtempSync(join(bench.folder, 'drill-'))
  const storePath = join(folder, 'relay.db')
  await copyPastStore({ parcels, keep: settings.keep, say }, storePath)
  const steps = createSteps(say)
  let relay = await startOperatedRelay(relayEntry, folder)
  try {
    const erased = parcelIdIn(storePath, trackingId(ERASED))
    const before = await historiesIn(relay, parcels)
    await steps.take('backup', async () => {
      await (await relay.order('/relay/backups', { name: 'drill' })).done()
    })
    await steps.take('more load', () => pushMore(relay, Math.ceil(events * MORE)))
    await steps.take('erase', async () => {
      equal((await relay.ask('DELETE', `/relay/parcels/${trackingId(ERASED)}`)).status, 200)
    })
    await steps.take('stop', () => relay.stop())
    const backup = join(backupsIn(folder), 'drill.db')
    await steps.take('restore', () => restore(relayEntry, folder, backup))
    relay = await steps.take('start', () => startOperatedRelay(relayEntry, folder))
    // Compare before anybody asks for a parcel, because requests change the store.
    await steps.take('compare', async () => {
      deepEqual(compareStores(storePath, backup, erased), [], 'the store is as in the backup')
      equal(rowsOfParcel(storePath, erased), 0, 'nothing is left of the erased parcel')
    })
    await steps.take('ask', async () => {
      deepEqual(await historiesIn(relay, parcels), before, 'every history is served as before')
      await assertUnknown(relay, [ERASED, MORE_FIRST_PARCEL])
    })
  } finally {
    await relay.stop()
    rmSync(folder, { recursive: true })
  }
  const name = `years: backup and restore drill, ${events} events`
  return {
    figures: [figure(name, [steps.seconds()], { unit: 's', better: 'lower', must: 60, aim: 20 })],
    observations: [{ name: `years: drill, seconds of each step: ${steps.describe()}`, facts: {} }],
  }
}

/** Makes a function that measures the steps of the drill. */
function createSteps(say: (text: string) => void) {
  const taken: (readonly [name: string, seconds: number])[] = []
  return {
    async take<Result>(name: string, step: () => Promise<Result>): Promise<Result> {
      const startMs = performance.now()
      const result = await step()
      const seconds = (performance.now() - startMs) / 1000
      taken.push([name, seconds])
      say(`drill, ${name}: ${seconds.toFixed(1)} s`)
      return result
    },
    seconds: () => taken.reduce((sum, [, seconds]) => sum + seconds, 0),
    describe: () => taken.map(([name, seconds]) => `${name} ${seconds.toFixed(1)}`).join(', '),
  }
}

async function pushMore({ port }: OperatedRelay, events: number): Promise<void> {
  const load = startGenerator()
  try {
    await load.prepare({ kind: 'pushes', firstParcel: MORE_FIRST_PARCEL, events, sharedKey: SHARED_KEY, repeat: false })
    await load.run({ port, connections: CONNECTIONS, pace: { kind: 'closed', durationMs: null } })
  } finally {
    await load.stop()
  }
}

/** Restores as an operator does, while the relay is stopped. */
async function restore(relayEntry: string, folder: string, backup: string): Promise<void> {
  await promisify(execFile)(process.execPath, [relayEntry, 'restore', backup, '--config', join(folder, 'relay.yaml'), '--yes'])
}

/** Returns the histories of some parcels as apps get them. */
async function historiesIn({ ask }: OperatedRelay, parcels: number): Promise<readonly unknown[]> {
  const asked = Array.from({ length: ASKED }, (_, at) => Math.floor((at * parcels) / ASKED)).filter((parcel) => parcel !== ERASED)
  const answers = await Promise.all(asked.map((parcel) => ask('GET', historyPath(parcel))))
  for (const { status } of answers) equal(status, 200, 'a stored history is served')
  return answers.map(({ body }) => body)
}

async function assertUnknown({ ask }: OperatedRelay, parcels: readonly number[]): Promise<void> {
  for (const parcel of parcels) equal((await ask('GET', `/relay/parcels/${trackingId(parcel)}`)).status, 404, 'what was taken back is gone')
}

function historyPath(parcel: number): string {
  return `/v1/status/${trackingId(parcel)}/all?language=en`
}
