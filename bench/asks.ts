import type { Generator } from './load/generator-process.ts'
import { type Measurement, measure, paceOf, warmUp } from './measure.ts'
import type { Settings } from './settings.ts'

export interface AskLoad {
  readonly pid: number
  readonly port: number
  readonly connections: number
  /** Null: closed loop. */
  readonly ratePerSecond: number | null
}

/** Warms up, then measures reads of `all` of random parcels. */
export async function measureAsks(load: Generator, settings: Settings, of: AskLoad): Promise<Measurement> {
  const { pid, port, connections, ratePerSecond } = of
  await warmUp(load, port, settings.warmUpMs)
  return await measure(load, pid, { port, connections, pace: paceOf(ratePerSecond, settings.durationMs) })
}

/** Reads each parcel once to fill the cache. */
export async function askAllOnce(load: Generator, port: number, parcels: number, token: string): Promise<void> {
  await load.prepare({ kind: 'asks', parcels, token, order: 'once' })
  await load.run({ port, connections: 64, pace: { kind: 'closed', durationMs: null } })
}
