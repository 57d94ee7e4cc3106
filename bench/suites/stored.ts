import { equal, ok } from 'node:assert/strict'
import { join } from 'node:path'
import { figure } from '../figures.ts'
import { type Generator, startGenerator } from '../load/generator-process.ts'
import { median } from '../load/percentiles.ts'
import { interleave, observe, ratios } from '../measure.ts'
import { measurePushes } from '../pushes.ts'
import { memoryOf } from '../servers/process-usage.ts'
import { startRelay } from '../servers/relay.ts'
import { SHARED_KEY } from '../servers/relay-config.ts'
import { contentsOf } from '../stores/contents.ts'
import { copyPrefilledStore } from '../stores/prefill.ts'
import type { Bench, Figure, SuiteReport } from '../suite.ts'
import { pushToEmptyRelay } from './ingest.ts'

const CONNECTIONS = 64
const MB = 1024 ** 2
/** Gives each load its own parcels. */
const PARCELS_APART = 10_000_000
const READ_RATE = 200

/** The effect of a million stored events on ingest, disk space, start after kill -9 and memory. */
export async function stored(bench: Bench): Promise<SuiteReport> {
  const { settings, folder, say } = bench
  const storePath = join(folder, 'stored.db')
  await copyPrefilledStore(settings.scale.storedParcels, storePath, say)
  const before = contentsOf(storePath)
  const load = startGenerator()
  const askLoad = startGenerator()
  let loads = 0
  const newParcels = () => PARCELS_APART * ++loads
  try {
    const rates = await compareRates(bench, load, storePath, newParcels)
    const pushed = rates.stored.reduce((sum, { acknowledged }) => sum + acknowledged, 0)
    equal(contentsOf(storePath).pushes, before.pushes + pushed, 'the store holds what was acknowledged')
    const ratePerSecond = Math.round(median(rates.stored.map((one) => one.ratePerSecond)) / 2)
    const memory = await measureMemory(bench, load, askLoad, storePath, { ratePerSecond, firstParcel: newParcels() })
    const restarts = await measureRestarts(bench, load, storePath, newParcels)
    const disk = contentsOf(storePath)
    const ratio = ratios(rates.stored, rates.empty, (of) => of.ratePerSecond)
    return {
      figures: [
        figure(`ingest: rate with ${before.pushes} events stored / empty`, ratio, { unit: 'x', better: 'higher', must: 0.75, aim: 0.9 }),
        figure('bytes on disk per event / bytes of its body', [disk.fileBytes / disk.bodyBytes], {
          unit: 'x',
          better: 'lower',
          must: 3,
          aim: 1.5,
        }),
        restarts,
        memory,
      ],
      observations: [
        observe(`ingest, ${before.pushes} stored: relay`, rates.stored),
        observe('ingest, empty: relay', rates.empty),
        {
          name: `store at the end: ${disk.pushes} events, ${Math.round(disk.fileBytes / MB)} MB, bodies of ${Math.round(disk.bodyBytes / disk.pushes)} bytes`,
          facts: {},
        },
      ],
    }
  } finally {
    await load.stop()
    await askLoad.stop()
  }
}

async function compareRates(bench: Bench, load: Generator, storePath: string, newParcels: () => number) {
  const { settings, relayEntry, folder, say } = bench
  const most = { connections: CONNECTIONS, ratePerSecond: null }
  return await interleave(settings.rounds, {
    stored: async () => {
      const relay = await startRelay(relayEntry, folder, { storePath })
      const measured = await measurePushes(load, relay, settings, { ...most, firstParcel: newParcels(), repeat: false })
      await relay.stop()
      say(`relay, full store: ${Math.round(measured.ratePerSecond)}/s`)
      return measured
    },
    empty: () => pushToEmptyRelay(bench, load, most),
  })
}

interface Pushing {
  readonly ratePerSecond: number
  readonly firstParcel: number
}

/** Peak memory with default limits, while pushes arrive at half the maximum and reads are spread over the whole store. */
async function measureMemory(
  { settings, relayEntry, folder, say }: Bench,
  load: Generator,
  askLoad: Generator,
  storePath: string,
  pushing: Pushing,
): Promise<Figure> {
  const relay = await startRelay(relayEntry, folder, { storePath })
  const token = await relay.logIn()
  await askLoad.prepare({ kind: 'asks', parcels: settings.scale.storedParcels, token, order: 'random' })
  const durationMs = settings.durationMs * settings.rounds
  await Promise.all([
    measurePushes(load, relay, { ...settings, durationMs }, { ...pushing, connections: CONNECTIONS, repeat: false }),
    askLoad.run({ port: relay.internalPort, connections: CONNECTIONS, pace: { kind: 'open', ratePerSecond: READ_RATE, durationMs } }),
  ])
  const { peakBytes, residentBytes } = memoryOf(relay.pid)
  await relay.stop()
  say(`resident: ${Math.round(residentBytes / MB)} MB, at its peak ${Math.round(peakBytes / MB)} MB`)
  return figure('resident memory under load, at its peak', [peakBytes / MB], { unit: 'MB', better: 'lower', must: 300, aim: 200 })
}

/** Time from process start, after a kill under load, to the first answer that reports ready. */
async function measureRestarts(bench: Bench, load: Generator, storePath: string, newParcels: () => number): Promise<Figure> {
  const { settings, relayEntry, folder, say } = bench
  const seconds: number[] = []
  for (let round = 0; round < settings.rounds; round++) {
    const relay = await startRelay(relayEntry, folder, { storePath })
    await load.prepare({ kind: 'pushes', firstParcel: newParcels(), events: 100_000, sharedKey: SHARED_KEY, repeat: false })
    const pushing = load.runWhatever({ port: relay.port, connections: CONNECTIONS, pace: { kind: 'closed', durationMs: null } })
    const killing = new Promise<void>((resolve) => setTimeout(() => resolve(relay.kill()), settings.durationMs))
    const [pushed] = await Promise.all([pushing, killing])
    ok((pushed.outcomes['200'] ?? 0) > 0, 'pushes were answered before the kill')
    const startMs = performance.now()
    const again = await startRelay(relayEntry, folder, { storePath })
    const response = await again.ask('/readyz', '')
    seconds.push((performance.now() - startMs) / 1000)
    equal(response.status, 200, 'the relay says it is ready')
    await again.stop()
    say(`ready ${seconds.at(-1)?.toFixed(2)} s after kill -9`)
  }
  return figure('kill -9 to ready', seconds, { unit: 's', better: 'lower', must: 2, aim: 0.5 })
}
