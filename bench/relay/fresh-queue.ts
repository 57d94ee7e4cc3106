import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { delivery } from '../../src/core/config/schema-outbound.ts'
import { figure } from '../figures.ts'
import { EVENTS_PER_PARCEL } from '../load/event.ts'
import { startRelay } from '../servers/relay.ts'
import { startFloor } from '../servers/server.ts'
import { copyPrefilledStore } from '../stores/prefill.ts'
import type { Bench, SuiteReport } from '../suite.ts'
import { type Delivering, measureDelivering, observeDelivering } from './delivering.ts'
import { endpointNames, startReceivers } from './receivers.ts'

const ENDPOINTS = 4
/** Concurrent attempts per endpoint: the default setting. */
const AT_ONCE = delivery().parse({}).perEndpoint

/** A relay that starts with a full queue, compared with plain posts of the same bodies to as many endpoints at the same concurrency. */
export async function freshQueue(bench: Bench): Promise<SuiteReport> {
  const { settings, say } = bench
  const relay: Delivering[] = []
  const plain: Delivering[] = []
  for (let round = 0; round < settings.rounds; round++) {
    relay.push(await deliver(bench))
    say(`relay: ${Math.round(relay.at(-1)?.ratePerSecond ?? 0)} deliveries/s`)
    plain.push(await postPlainly(bench))
    say(`plain posts: ${Math.round(plain.at(-1)?.ratePerSecond ?? 0)}/s`)
  }
  const ratio = relay.map((one, round) => one.ratePerSecond / (plain[round]?.ratePerSecond ?? Number.NaN))
  return {
    figures: [figure('relay: deliveries, 4 endpoints / plain posts', ratio, { unit: 'x', better: 'higher', must: 0.4, aim: 0.6 })],
    observations: [observeDelivering('relay, 4 endpoints', relay), observeDelivering('plain posts', plain)],
  }
}

async function deliver({ settings, folder, relayEntry, say }: Bench): Promise<Delivering> {
  const parcels = settings.scale.queuedParcels
  const ownFolder = mkdtempSync(join(folder, 'queue-'))
  const storePath = join(ownFolder, 'relay.db')
  await copyPrefilledStore(parcels, storePath, say, endpointNames(ENDPOINTS))
  const receivers = await startReceivers({ endpoints: ENDPOINTS })
  const relay = await startRelay(relayEntry, ownFolder, { storePath, sections: receivers.sections })
  await pause(settings.warmUpMs)
  const measured = await measureDelivering(receivers, relay.pid, settings.durationMs)
  const { total } = await receivers.tally()
  if (total >= parcels * EVENTS_PER_PARCEL * ENDPOINTS) throw new Error('the queue ran dry while it was measured')
  await relay.stop()
  await receivers.stop()
  rmSync(ownFolder, { recursive: true, force: true })
  return measured
}

async function postPlainly({ settings }: Bench): Promise<Delivering> {
  const receivers = await startReceivers({ endpoints: ENDPOINTS })
  const poster = await startFloor('./plain-poster.ts', String(AT_ONCE), ...receivers.ports.map(String))
  await pause(settings.warmUpMs)
  const measured = await measureDelivering(receivers, poster.pid, settings.durationMs)
  await poster.kill()
  await receivers.stop()
  return measured
}
