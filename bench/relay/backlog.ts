import { equal } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { figure } from '../figures.ts'
import { EVENTS_PER_PARCEL } from '../load/event.ts'
import { memoryOf, usageOf } from '../servers/process-usage.ts'
import { startRelay } from '../servers/relay.ts'
import { contentsOf } from '../stores/contents.ts'
import { copyPrefilledStore } from '../stores/prefill.ts'
import type { Bench, SuiteReport } from '../suite.ts'
import { endpointNames, type Receivers, startReceivers } from './receivers.ts'

const ENDPOINTS = 4
/** Compares the first and last tenth of the backlog, in five parts each. One part before the first is the warm-up. */
const PARTS = 50
const COMPARED = 5
const LOOK_MS = 20
const MB = 1024 ** 2

/** Measures how a relay drains a backlog that it finds at start. */
export async function backlog({ settings, folder, relayEntry, say }: Bench): Promise<SuiteReport> {
  const parcels = settings.scale.backlogParcels
  const all = parcels * EVENTS_PER_PARCEL * ENDPOINTS
  const ownFolder = mkdtempSync(join(folder, 'backlog-'))
  const storePath = join(ownFolder, 'relay.db')
  await copyPrefilledStore(parcels, storePath, say, endpointNames(ENDPOINTS))
  const receivers = await startReceivers({ endpoints: ENDPOINTS })
  const relay = await startRelay(relayEntry, ownFolder, { storePath, sections: receivers.sections })
  const rates = await ratesOf(receivers, all, say)
  const { peakBytes } = memoryOf(relay.pid)
  const { cpuMs, loopsCpuMs } = usageOf(relay.pid)
  await relay.stop()
  const { total } = await receivers.tally()
  await receivers.stop()
  equal(total, all, 'everything was delivered once')
  equal(contentsOf(storePath).delivered, all, 'and is known to be')
  rmSync(ownFolder, { recursive: true, force: true })
  const start = rates.slice(1, 1 + COMPARED)
  const end = rates.slice(-COMPARED)
  const ratio = end.map((rate, at) => rate / (start[at] ?? Number.NaN))
  return {
    figures: [figure(`relay: drain of ${all}, rate at the end / at the start`, ratio, { unit: 'x', better: 'higher', must: 0.9, aim: 1 })],
    observations: [
      {
        name: `drain of ${all}, at its peak ${Math.round(peakBytes / MB)} MB`,
        facts: {
          'req/s': Math.round(rates.reduce((sum, rate) => sum + rate, 0) / rates.length),
          'cpu us/req': Number(((cpuMs * 1000) / all).toFixed(1)),
          'loops us/req': Number(((loopsCpuMs * 1000) / all).toFixed(1)),
        },
      },
      { name: `... its tenths: ${tenths(rates).map(Math.round).join(', ')}/s`, facts: {} },
    ],
  }
}

/** Returns the delivery rate of each part. */
async function ratesOf(receivers: Receivers, all: number, say: (text: string) => void): Promise<readonly number[]> {
  const rates: number[] = []
  let from = await receivers.tally()
  while (rates.length < PARTS) {
    const tally = await receivers.tally()
    if (tally.total >= Math.ceil(((rates.length + 1) * all) / PARTS)) {
      rates.push(((tally.total - from.total) / (tally.atMs - from.atMs)) * 1000)
      from = tally
      if (rates.length % COMPARED === 0) say(`${tally.total} of ${all} delivered, ${Math.round(rates.at(-1) ?? 0)}/s`)
    } else await pause(LOOK_MS)
  }
  return rates
}

function tenths(rates: readonly number[]): readonly number[] {
  const size = rates.length / 10
  return Array.from({ length: 10 }, (_, at) => rates.slice(at * size, (at + 1) * size).reduce((sum, rate) => sum + rate, 0) / size)
}
