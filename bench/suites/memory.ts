import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { askAllOnce } from '../asks.ts'
import { figure } from '../figures.ts'
import { EVENTS_PER_PARCEL } from '../load/event.ts'
import { type Generator, startGenerator } from '../load/generator-process.ts'
import { median } from '../load/percentiles.ts'
import { startReceivers } from '../relay/receivers.ts'
import { memoryOf } from '../servers/process-usage.ts'
import { type RelayServer, startRelay } from '../servers/relay.ts'
import { SHARED_KEY } from '../servers/relay-config.ts'
import type { Bench, SuiteReport } from '../suite.ts'

const SENDERS = 8
const READERS = 4
const EVENTS_AT_ONCE = 140_000
const LOOK_MS = 500

/** The relay's anonymous memory while pushes, reads and deliveries all run at full speed. */
export async function memory(bench: Bench): Promise<SuiteReport> {
  const { settings, folder, relayEntry, say } = bench
  const [senders, readers] = [startGenerator(), startGenerator()]
  const receivers = await startReceivers({ endpoints: 1 })
  const own = mkdtempSync(join(folder, 'relay-'))
  const relay = await startRelay(relayEntry, own, { storePath: join(own, 'relay.db'), sections: receivers.sections })
  const looked: number[] = []
  let isOver = false
  try {
    const looking = look(relay.pid, looked, () => isOver)
    let pushed = await pushSome(senders, relay, 0)
    const reading = readOn(readers, relay, settings.scale.hotParcels, () => isOver)
    const total = settings.quick ? 2 * EVENTS_AT_ONCE : EVENTS_AT_ONCE * 9
    while (pushed < total) {
      pushed += await pushSome(senders, relay, pushed)
      say(`${pushed} pushed: ${inMegabytes(looked.at(-1) ?? 0)} MB`)
    }
    isOver = true
    await Promise.all([looking, reading])
  } finally {
    isOver = true
    await relay.stop()
    await Promise.all([senders.stop(), readers.stop(), receivers.stop()])
  }
  const third = Math.floor(looked.length / 3)
  const [early, late] = [median(looked.slice(third, 2 * third)), median(looked.slice(2 * third))]
  return {
    figures: [
      figure('memory: anonymous, the most', [inMegabytes(Math.max(...looked))], { unit: 'MB', better: 'lower', must: 350, aim: 250 }),
      figure('memory: its last third / its second', [late / early], { unit: 'x', better: 'lower', must: 1.1 }),
    ],
    observations: [{ name: 'memory', facts: { 'second third MB': inMegabytes(early), 'last third MB': inMegabytes(late) } }],
  }
}

async function pushSome(load: Generator, { port }: RelayServer, pushed: number): Promise<number> {
  const firstParcel = pushed / EVENTS_PER_PARCEL
  await load.prepare({ kind: 'pushes', firstParcel, events: EVENTS_AT_ONCE, sharedKey: SHARED_KEY, repeat: false })
  await load.run({ port, connections: SENDERS, pace: { kind: 'closed', durationMs: null } })
  return EVENTS_AT_ONCE
}

async function readOn(load: Generator, relay: RelayServer, parcels: number, isOver: () => boolean): Promise<void> {
  const known = Math.min(parcels, EVENTS_AT_ONCE / EVENTS_PER_PARCEL)
  const token = await relay.logIn()
  await askAllOnce(load, relay.internalPort, known, token)
  await load.prepare({ kind: 'asks', parcels: known, token, order: 'random' })
  while (!isOver()) await load.run({ port: relay.internalPort, connections: READERS, pace: { kind: 'closed', durationMs: 1000 } })
}

async function look(pid: number, looked: number[], isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    looked.push(memoryOf(pid).anonymousBytes)
    await pause(LOOK_MS)
  }
}

function inMegabytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024)
}
