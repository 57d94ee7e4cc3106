import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { askAllOnce, measureAsks } from '../asks.ts'
import { figure } from '../figures.ts'
import { EVENTS_PER_PARCEL } from '../load/event.ts'
import { type Generator, startGenerator } from '../load/generator-process.ts'
import { median } from '../load/percentiles.ts'
import { measurePushes } from '../pushes.ts'
import { untilDelivered } from '../relay/delivering.ts'
import { startReceivers } from '../relay/receivers.ts'
import { usageOf } from '../servers/process-usage.ts'
import { startRelay } from '../servers/relay.ts'
import type { Settings } from '../settings.ts'
import type { Bench, Figure, Observation, SuiteReport } from '../suite.ts'

const CONNECTIONS = 64
/** Short, because the effects of a start show at once and the suite measures many starts. */
const WARM_UP_MS = 1000
const DURATION_MS = 1500

/** Processor time of all threads, in microseconds per operation. */
interface Start {
  readonly push: number
  readonly read: number
  /** A push and its delivery to one endpoint. */
  readonly relayedPush: number
}

type Operation = keyof Start
const OPERATIONS: readonly Operation[] = ['push', 'read', 'relayedPush']

/**
 * Compares many starts of the relay, because some early decisions of the JavaScript engine last as long as the process. `--beside FILE`
 * alternates with another compiled `main.js` and compares the two.
 */
export async function starts(bench: Bench): Promise<SuiteReport> {
  const { settings, say } = bench
  const entries = settings.beside === null ? [bench.relayEntry] : [bench.relayEntry, settings.beside]
  const taken = entries.map((): Start[] => [])
  const load = startGenerator()
  try {
    for (let nth = 0; nth < settings.starts; nth++) {
      for (const [at, entry] of entries.entries()) {
        const start = { ...(await pushAndRead(bench, load, entry)), relayedPush: await pushThrough(bench, load, entry) }
        taken[at]?.push(start)
        say(`start ${nth + 1}${at === 0 ? '' : ', the other'}: ${OPERATIONS.map((of) => `${of} ${start[of].toFixed(1)}`).join(', ')} us`)
      }
    }
  } finally {
    await load.stop()
  }
  const [own = [], other = []] = taken
  return {
    figures: [...(own.length === 0 ? [] : OPERATIONS.map((of) => worst(own, of))), ...OPERATIONS.flatMap((of) => beside(own, other, of))],
    observations: [observeStarts('starts', own), ...(other.length === 0 ? [] : [observeStarts('starts of the other', other)])],
  }
}

function worst(taken: readonly Start[], of: Operation): Figure {
  const each = taken.map((start) => start[of])
  return figure(`starts: ${of}, worst / median`, [Math.max(...each) / median(each)], { unit: 'x', better: 'lower', must: 1.15 })
}

function beside(own: readonly Start[], other: readonly Start[], of: Operation): readonly Figure[] {
  if (other.length === 0) return []
  const ratios = own.map((start, at) => start[of] / (other[at]?.[of] ?? Number.NaN))
  return [figure(`starts: processor time of a ${of} / the other's`, ratios, { unit: 'x', better: 'lower', must: 1.05 })]
}

function observeStarts(name: string, taken: readonly Start[]): Observation {
  return { name, facts: Object.fromEntries(OPERATIONS.map((of) => [`${of} us`, median(taken.map((start) => start[of])).toFixed(1)])) }
}

async function pushAndRead(bench: Bench, load: Generator, entry: string): Promise<Omit<Start, 'relayedPush'>> {
  const folder = mkdtempSync(join(bench.folder, 'start-'))
  const relay = await startRelay(entry, folder, { storePath: join(folder, 'relay.db') })
  const settings = short(bench.settings)
  const pushes = await measurePushes(load, relay, settings, {
    connections: CONNECTIONS,
    ratePerSecond: null,
    firstParcel: 0,
    repeat: false,
  })
  const token = await relay.logIn()
  const parcels = Math.min(settings.scale.hotParcels, Math.floor(pushes.acknowledged / EVENTS_PER_PARCEL / 2))
  await askAllOnce(load, relay.internalPort, parcels, token)
  await load.prepare({ kind: 'asks', parcels, token, order: 'random' })
  const asks = await measureAsks(load, settings, {
    pid: relay.pid,
    port: relay.internalPort,
    connections: CONNECTIONS,
    ratePerSecond: null,
  })
  await relay.stop()
  rmSync(folder, { recursive: true })
  return { push: pushes.cpuUsPerRequest, read: asks.cpuUsPerRequest }
}

async function pushThrough(bench: Bench, load: Generator, entry: string): Promise<number> {
  const folder = mkdtempSync(join(bench.folder, 'start-'))
  const receivers = await startReceivers({ endpoints: 1 })
  const relay = await startRelay(entry, folder, { storePath: join(folder, 'relay.db'), sections: receivers.sections })
  const before = usageOf(relay.pid)
  const { acknowledged } = await measurePushes(load, relay, short(bench.settings), {
    connections: CONNECTIONS,
    ratePerSecond: null,
    firstParcel: 0,
    repeat: false,
  })
  await untilDelivered(receivers, acknowledged)
  const after = usageOf(relay.pid)
  await relay.stop()
  await receivers.stop()
  rmSync(folder, { recursive: true })
  return ((after.cpuMs - before.cpuMs) * 1000) / acknowledged
}

function short(settings: Settings): Settings {
  return { ...settings, warmUpMs: WARM_UP_MS, durationMs: DURATION_MS }
}
