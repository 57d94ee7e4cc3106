import { equal } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { figure } from '../figures.ts'
import { type Generator, startGenerator } from '../load/generator-process.ts'
import { interleave, observe, ratios } from '../measure.ts'
import { measurePushes, type PushMeasurement } from '../pushes.ts'
import { startRelay } from '../servers/relay.ts'
import { contentsOf } from '../stores/contents.ts'
import type { Bench, SuiteReport } from '../suite.ts'
import { pushToEmptyRelay } from '../suites/ingest.ts'
import { untilDelivered } from './delivering.ts'
import { startReceivers, type Tally } from './receivers.ts'

const CONNECTIONS = 64
const ENDPOINTS = 2

interface Beside extends PushMeasurement {
  /** Delivery rate during ingest, at the slower endpoint. */
  readonly deliveredPerSecond: number
}

/** What deliveries cost ingest: closed-loop pushes with two endpoints and with none. */
export async function ingestBeside(bench: Bench): Promise<SuiteReport> {
  const load = startGenerator()
  const most = { connections: CONNECTIONS, ratePerSecond: null }
  try {
    const delivered: number[] = []
    const measured = await interleave(bench.settings.rounds, {
      relaying: async () => {
        const one = await pushAndDeliver(bench, load)
        delivered.push(one.deliveredPerSecond)
        return one
      },
      alone: () => pushToEmptyRelay(bench, load, most),
    })
    const rate = ratios(measured.relaying, measured.alone, (of) => of.ratePerSecond)
    return {
      figures: [
        figure('relay: ingest rate with 2 endpoints / with none', rate, { unit: 'x', better: 'higher', must: 0.5, aim: 0.7 }),
        figure('relay: each of them receives meanwhile', delivered, { unit: '/s', better: 'higher', must: 500 }),
      ],
      observations: [observe('ingest, 2 endpoints', measured.relaying), observe('ingest, no endpoint', measured.alone)],
    }
  } finally {
    await load.stop()
  }
}

/** Afterwards every event must have reached every endpoint exactly once. */
async function pushAndDeliver({ settings, relayEntry, folder, say }: Bench, load: Generator): Promise<Beside> {
  const ownFolder = mkdtempSync(join(folder, 'relaying-'))
  const storePath = join(ownFolder, 'relay.db')
  const receivers = await startReceivers({ endpoints: ENDPOINTS })
  const relay = await startRelay(relayEntry, ownFolder, { storePath, sections: receivers.sections })
  const [before, onWarm] = noted(receivers.tally)
  const pushes = { connections: CONNECTIONS, ratePerSecond: null, firstParcel: 0, repeat: false, onWarm }
  const measured = await measurePushes(load, relay, settings, pushes)
  const deliveredPerSecond = slowest(await before, await receivers.tally())
  await untilDelivered(receivers, measured.acknowledged * ENDPOINTS)
  await relay.stop()
  const { counts } = await receivers.tally()
  await receivers.stop()
  const contents = contentsOf(storePath)
  equal(contents.pushes, measured.acknowledged, 'the store holds what was acknowledged')
  equal(contents.delivered, measured.acknowledged * ENDPOINTS, 'everything is delivered to every endpoint')
  equal(contents.deliveries, contents.delivered, 'nothing else waits')
  for (const count of counts) equal(count, measured.acknowledged, 'every endpoint got everything, once')
  rmSync(ownFolder, { recursive: true, force: true })
  say(
    `relay, 2 endpoints: ${Math.round(measured.ratePerSecond)}/s, each got ${Math.round(deliveredPerSecond)}/s meanwhile, and then the rest`,
  )
  return { ...measured, deliveredPerSecond }
}

/** Returns a promise, and the function that resolves it with a result of `take`. */
function noted<T>(take: () => Promise<T>): readonly [Promise<T>, () => Promise<void>] {
  const { promise, resolve } = Promise.withResolvers<T>()
  return [promise, async () => resolve(await take())]
}

function slowest(before: Tally, after: Tally): number {
  const counts = after.counts.map((count, at) => count - (before.counts[at] ?? 0))
  return (Math.min(...counts) / (after.atMs - before.atMs)) * 1000
}
