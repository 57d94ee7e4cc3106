import type { Generator } from './load/generator-process.ts'
import { type Measurement, measure } from './measure.ts'
import type { Settings } from './settings.ts'

export interface AskLoad {
  readonly pid: number
  readonly port: number
  readonly connections: number
  /** Null: as fast as answers come. */
  readonly ratePerSecond: number | null
}

/** Warms up and measures what was prepared: `all` of any parcel, again and again. */
export async function measureAsks(
  load: Generator,
  settings: Settings,
  { pid, port, connections, ratePerSecond }: AskLoad,
): Promise<Measurement> {
  const pace = (durationMs: number) =>
    ratePerSecond === null ? { kind: 'closed' as const, durationMs } : { kind: 'open' as const, ratePerSecond, durationMs }
  await load.run({ port, connections, pace: pace(settings.warmUpMs) })
  return await measure(load, pid, { port, connections, pace: pace(settings.durationMs) })
}

/** Asks about each parcel once, so that what fits a cache is in it. */
export async function askAllOnce(load: Generator, port: number, parcels: number, token: string): Promise<void> {
  await load.prepare({ kind: 'asks', parcels, token, order: 'once' })
  await load.run({ port, connections: 64, pace: { kind: 'closed', durationMs: null } })
}
