import { equal } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { figure } from '../figures.ts'
import { type Generator, startGenerator } from '../load/generator-process.ts'
import { median } from '../load/percentiles.ts'
import { interleave, observe, ratios } from '../measure.ts'
import { assertVisible, measurePushes, type PushLoad, type PushMeasurement } from '../pushes.ts'
import { startRelay } from '../servers/relay.ts'
import { SHARED_KEY } from '../servers/relay-config.ts'
import { startFloor } from '../servers/server.ts'
import { contentsOf } from '../stores/contents.ts'
import type { Bench, SuiteReport } from '../suite.ts'

const CONNECTIONS = 64

/** Pushes into an empty store, compared with a Koa route that only reads them (with and without a router) and with a hand-written handler. */
export async function ingest(bench: Bench): Promise<SuiteReport> {
  const load = startGenerator()
  const { rounds } = bench.settings
  try {
    const most = { connections: CONNECTIONS, ratePerSecond: null }
    const full = await interleave(rounds, {
      relay: () => pushToEmptyRelay(bench, load, most),
      floor: () => pushToFloor(bench, load, most),
      bare: () => pushToFloor(bench, load, most, './raw-body-bare.ts'),
      byHand: () => pushToDurable(bench, load, most, './hand-written.ts'),
    })
    const atHalf = { connections: CONNECTIONS, ratePerSecond: halfOf(full.relay) }
    const atOwnHalf = { connections: CONNECTIONS, ratePerSecond: halfOf(full.floor) }
    const half = await interleave(rounds, {
      relay: () => pushToEmptyRelay(bench, load, atHalf),
      floor: () => pushToFloor(bench, load, atHalf),
      // The cost of durability alone: it parses, merges and announces nothing.
      least: () => pushToDurable(bench, load, atHalf, './least-durable.ts'),
      // At half its own maximum, like the relay: shows what a machine that slows down for a moment does to any server.
      floorAtOwnHalf: () => pushToFloor(bench, load, atOwnHalf),
    })
    const one = { connections: 1, ratePerSecond: null }
    const idle = await interleave(rounds, {
      relay: () => pushToEmptyRelay(bench, load, one),
      floor: () => pushToFloor(bench, load, one),
    })
    const rate = ratios(full.relay, full.floor, (of) => of.ratePerSecond)
    const rateBare = ratios(full.relay, full.bare, (of) => of.ratePerSecond)
    const rateByHand = ratios(full.relay, full.byHand, (of) => of.ratePerSecond)
    const p99 = ratios(half.relay, half.floor, (of) => of.latencyMs.p99)
    const p99OfLeast = ratios(half.least, half.floor, (of) => of.latencyMs.p99)
    const p99AtOwnHalf = ratios(half.relay, half.floorAtOwnHalf, (of) => of.latencyMs.p99)
    const rateIdle = ratios(idle.relay, idle.floor, (of) => of.ratePerSecond)
    return {
      figures: [
        figure('ingest: rate / raw-body route', rate, { unit: 'x', better: 'higher', must: 0.4, aim: 0.55 }),
        figure('ingest: rate / raw-body, no router', rateBare, { unit: 'x', better: 'higher' }),
        figure('ingest: rate / hand-written handler', rateByHand, { unit: 'x', better: 'higher', must: 5, aim: 8 }),
        figure('ingest: p99 at half the maximum / route', p99, { unit: 'x', better: 'lower', must: 4, aim: 2 }),
        figure('ingest: p99 of the least durable at that rate / route', p99OfLeast, { unit: 'x', better: 'lower' }),
        figure('ingest: p99 at half the maximum / route at half its own', p99AtOwnHalf, { unit: 'x', better: 'lower' }),
        figure('ingest: rate / route, 1 connection', rateIdle, { unit: 'x', better: 'higher' }),
      ],
      observations: [
        observe('ingest: relay', full.relay),
        observe('ingest: raw-body route', full.floor),
        observe('ingest: raw-body, no router', full.bare),
        observe('ingest: hand-written', full.byHand),
        observe(`ingest at ${atHalf.ratePerSecond}/s: relay`, half.relay),
        observe(`ingest at ${atHalf.ratePerSecond}/s: raw-body route`, half.floor),
        observe(`ingest at ${atHalf.ratePerSecond}/s: least durable`, half.least),
        observe(`ingest at ${atOwnHalf.ratePerSecond}/s: raw-body route`, half.floorAtOwnHalf),
        observe('ingest, 1 connection: relay', idle.relay),
        observe('ingest, 1 connection: raw-body route', idle.floor),
      ],
    }
  } finally {
    await load.stop()
  }
}

function halfOf(rounds: readonly PushMeasurement[]): number {
  return Math.round(median(rounds.map((one) => one.ratePerSecond)) / 2)
}

type Load = Pick<PushLoad, 'connections' | 'ratePerSecond'>

/** Pushes to a relay with its own store. Afterwards the store must hold, and the relay serve, exactly what was acknowledged. */
export async function pushToEmptyRelay({ settings, relayEntry, folder, say }: Bench, load: Generator, of: Load): Promise<PushMeasurement> {
  const ownFolder = mkdtempSync(join(folder, 'relay-'))
  const storePath = join(ownFolder, 'relay.db')
  const relay = await startRelay(relayEntry, ownFolder, { storePath })
  const pushes = { ...of, firstParcel: 0, repeat: false }
  const measured = await measurePushes(load, relay, settings, pushes)
  await assertVisible(relay, pushes, measured.acknowledged, of.connections)
  await relay.stop()
  const { pushes: stored, entries, quarantined } = contentsOf(storePath)
  equal(stored, measured.acknowledged, 'the store holds what was acknowledged')
  equal(entries, measured.acknowledged, 'each push became an entry')
  equal(quarantined, 0, 'nothing was quarantined')
  rmSync(ownFolder, { recursive: true, force: true })
  say(`relay: ${Math.round(measured.ratePerSecond)}/s, ${stored} stored`)
  return measured
}

async function pushToFloor({ settings, say }: Bench, load: Generator, of: Load, file = './raw-body-route.ts'): Promise<PushMeasurement> {
  const floor = await startFloor(file)
  const measured = await measurePushes(load, floor, settings, { ...of, firstParcel: 0, repeat: true })
  await floor.stop()
  say(`${file}: ${Math.round(measured.ratePerSecond)}/s`)
  return measured
}

/** Pushes to a server that stores what it acknowledges in its own file. */
async function pushToDurable({ settings, folder, say }: Bench, load: Generator, of: Load, file: string): Promise<PushMeasurement> {
  const ownFolder = mkdtempSync(join(folder, 'durable-'))
  const server = await startFloor(file, join(ownFolder, 'push.db'), SHARED_KEY)
  const measured = await measurePushes(load, server, settings, { ...of, firstParcel: 0, repeat: false })
  await server.stop()
  rmSync(ownFolder, { recursive: true, force: true })
  say(`${file}: ${Math.round(measured.ratePerSecond)}/s`)
  return measured
}
