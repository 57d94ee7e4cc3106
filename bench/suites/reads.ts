import { equal } from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { askAllOnce, measureAsks } from '../asks.ts'
import { figure } from '../figures.ts'
import { trackingId } from '../load/event.ts'
import { type Generator, startGenerator } from '../load/generator-process.ts'
import { median } from '../load/percentiles.ts'
import { interleave, type Measurement, observe, ratios } from '../measure.ts'
import { measurePushes } from '../pushes.ts'
import { type RelayServer, startRelay } from '../servers/relay.ts'
import { type Server, startFloor } from '../servers/server.ts'
import type { Settings } from '../settings.ts'
import { copyPrefilledStore } from '../stores/prefill.ts'
import type { Bench, SuiteReport } from '../suite.ts'

const CONNECTIONS = 64
/** What the relay's cache adds to the size of each body. */
const CACHED_OVERHEAD_BYTES = 512
const HOT_CACHE_BYTES = 1024 ** 3
/** The rate of reads during pushes, as a share of the maximum without pushes. */
const READ_SHARE = 0.1
/** Gives each load of pushes its own parcels. */
const PARCELS_APART = 10_000_000
/** Pushes start this long before the reads and stop this long after them, preparation not counted. */
const AROUND_MS = 1500

/** Reads `all` with a bearer token, with and without pushes, compared with a Koa route that returns a constant body of the same size. */
export async function reads(bench: Bench): Promise<SuiteReport> {
  const { folder, settings, say } = bench
  const storePath = join(folder, 'relay.db')
  await copyPrefilledStore(settings.scale.uniformParcels, storePath, say)
  const load = startGenerator()
  const pushLoad = startGenerator()
  try {
    const sample = await sampleAnswer(bench, storePath)
    const floor = await startFloor('./constant-floor.ts', sample.path)
    const hot = await readHot(bench, load, pushLoad, storePath, floor)
    const uniform = await readUniform(bench, load, storePath, floor, sample.bytes)
    await floor.stop()
    return { figures: [...hot.figures, ...uniform.figures], observations: [...hot.observations, ...uniform.observations] }
  } finally {
    await load.stop()
    await pushLoad.stop()
  }
}

async function sampleAnswer({ relayEntry, folder }: Bench, storePath: string): Promise<{ readonly path: string; readonly bytes: number }> {
  const relay = await startRelay(relayEntry, folder, { storePath })
  const response = await relay.ask(`/v1/status/${trackingId(0)}/all?language=en`, await relay.logIn())
  equal(response.status, 200, 'a parcel of the filled store is served')
  const body = Buffer.from(await response.arrayBuffer())
  await relay.stop()
  const path = join(folder, 'answer.json')
  writeFileSync(path, body)
  return { path, bytes: body.length }
}

/** Reads answers that are all cached. */
async function readHot(bench: Bench, load: Generator, pushLoad: Generator, storePath: string, floor: Server): Promise<SuiteReport> {
  const { settings, folder, relayEntry, say } = bench
  const parcels = settings.scale.hotParcels
  const relay = await startRelay(relayEntry, folder, { storePath, sections: { limits: { cacheBytes: HOT_CACHE_BYTES } } })
  const token = await relay.logIn()
  await askAllOnce(load, relay.internalPort, parcels, token)
  await load.prepare({ kind: 'asks', parcels, token, order: 'random' })
  const beside = (connections: number) => besideFloor(bench, load, relay, floor, connections)
  const full = await beside(CONNECTIONS)
  const idle = await beside(1)
  say('reads while pushes come in ...')
  const readRate = Math.round(median(full.relay.map((one) => one.ratePerSecond)) * READ_SHARE)
  const mixed = await readWhilePushing(bench, load, pushLoad, relay, readRate)
  await relay.stop()
  const byRate = (of: Measurement) => of.ratePerSecond
  return {
    figures: [
      figure('reads: hot rate / constant-body floor', ratios(full.relay, full.floor, byRate), {
        unit: 'x',
        better: 'higher',
        must: 0.6,
        aim: 0.8,
      }),
      figure('reads: hot rate / floor, 1 connection', ratios(idle.relay, idle.floor, byRate), { unit: 'x', better: 'higher' }),
      figure(
        'reads: p99 while ingest runs at half its maximum / alone',
        ratios(mixed.during, mixed.alone, (of) => of.latencyMs.p99),
        { unit: 'x', better: 'lower', must: 4, aim: 2 },
      ),
    ],
    observations: [
      observe(`reads, hot ${parcels}: relay`, full.relay),
      observe('reads: constant-body floor', full.floor),
      observe('reads, 1 connection: relay', idle.relay),
      observe('reads, 1 connection: constant-body floor', idle.floor),
      observe(`reads at ${readRate}/s: alone`, mixed.alone),
      observe(`reads at ${readRate}/s: with pushes at ${mixed.pushRate}/s`, mixed.during),
    ],
  }
}

async function besideFloor({ settings }: Bench, load: Generator, relay: RelayServer, floor: Server, connections: number) {
  const fast = { connections, ratePerSecond: null }
  return await interleave(settings.rounds, {
    relay: () => measureAsks(load, settings, { pid: relay.pid, port: relay.internalPort, ...fast }),
    floor: () => measureAsks(load, settings, { pid: floor.pid, port: floor.port, ...fast }),
  })
}

/** Pushes concern parcels that nobody reads, so this measures what writing costs readers, not cache invalidation. */
async function readWhilePushing({ settings }: Bench, load: Generator, pushLoad: Generator, relay: RelayServer, ratePerSecond: number) {
  const asWarm = { ...settings, warmUpMs: 0 }
  const ask = () => measureAsks(load, asWarm, { pid: relay.pid, port: relay.internalPort, connections: CONNECTIONS, ratePerSecond })
  const push = (of: Settings, pushRate: number | null, load: number) =>
    measurePushes(pushLoad, relay, of, {
      connections: CONNECTIONS,
      ratePerSecond: pushRate,
      firstParcel: PARCELS_APART * load,
      repeat: false,
    })
  const pushRate = Math.round((await push(settings, null, 1)).ratePerSecond / 2)
  const during = async (round: number) => {
    const pushing = push({ ...asWarm, durationMs: settings.durationMs + 2 * AROUND_MS }, pushRate, round + 2)
    const [asked] = await Promise.all([new Promise((resolve) => setTimeout(resolve, AROUND_MS)).then(ask), pushing])
    return asked
  }
  return { pushRate, ...(await interleave(settings.rounds, { alone: ask, during })) }
}

/** Reads answers of which nine in ten are not cached. */
async function readUniform(bench: Bench, load: Generator, storePath: string, floor: Server, answerBytes: number): Promise<SuiteReport> {
  const { settings, folder, relayEntry } = bench
  const parcels = settings.scale.uniformParcels
  const cacheBytes = Math.round((parcels / 10) * (answerBytes + CACHED_OVERHEAD_BYTES))
  const relay = await startRelay(relayEntry, folder, { storePath, sections: { limits: { cacheBytes } } })
  const token = await relay.logIn()
  await askAllOnce(load, relay.internalPort, parcels, token)
  await load.prepare({ kind: 'asks', parcels, token, order: 'random' })
  const { relay: uniform, floor: constant } = await besideFloor(bench, load, relay, floor, CONNECTIONS)
  await relay.stop()
  const rate = ratios(uniform, constant, (of) => of.ratePerSecond)
  return {
    figures: [
      figure('reads: uniform rate, a tenth cached / constant-body floor', rate, { unit: 'x', better: 'higher', must: 0.25, aim: 0.4 }),
    ],
    observations: [observe(`reads, uniform ${parcels}: relay`, uniform), observe('reads: constant-body floor again', constant)],
  }
}
