import { setTimeout as pause } from 'node:timers/promises'
import { median } from '../load/percentiles.ts'
import { usageOf } from '../servers/process-usage.ts'
import type { Observation } from '../suite.ts'
import type { Receivers } from './receivers.ts'

/** Deliveries within a time, and their cost to the sending process. */
export interface Delivering {
  readonly ratePerSecond: number
  readonly cpuUs: number
  readonly loopsCpuUs: number
  readonly receiverCpuUs: number
}

export async function measureDelivering(receivers: Receivers, pid: number, durationMs: number): Promise<Delivering> {
  const [used, receiverUsed, before] = [usageOf(pid), usageOf(receivers.pid), await receivers.tally()]
  await pause(durationMs)
  const [after, usedAfter, receiverUsedAfter] = [await receivers.tally(), usageOf(pid), usageOf(receivers.pid)]
  const count = after.total - before.total
  const each = (fromMs: number, toMs: number) => ((toMs - fromMs) * 1000) / count
  return {
    ratePerSecond: (count / (after.atMs - before.atMs)) * 1000,
    cpuUs: each(used.cpuMs, usedAfter.cpuMs),
    loopsCpuUs: each(used.loopsCpuMs, usedAfter.loopsCpuMs),
    receiverCpuUs: each(receiverUsed.cpuMs, receiverUsedAfter.cpuMs),
  }
}

/** Resolves once the receivers have `total` deliveries; throws if deliveries stop before that. */
export async function untilDelivered(receivers: Receivers, total: number): Promise<void> {
  let last = { total: -1, atMs: 0 }
  for (;;) {
    const { total: got, atMs } = await receivers.tally()
    if (got >= total) return
    if (got > last.total) last = { total: got, atMs }
    else if (atMs - last.atMs > PATIENCE_MS) throw new Error(`${got} of ${total} were delivered, and nothing more comes`)
    await pause(LOOK_MS)
  }
}

const PATIENCE_MS = 20_000
const LOOK_MS = 100

export function observeDelivering(name: string, rounds: readonly Delivering[]): Observation {
  const of = (value: (of: Delivering) => number, digits: number) => Number(median(rounds.map(value)).toFixed(digits))
  return {
    name,
    facts: {
      'req/s': of((one) => one.ratePerSecond, 0),
      'cpu us/req': of((one) => one.cpuUs, 1),
      'loops us/req': of((one) => one.loopsCpuUs, 1),
      'load us/req': of((one) => one.receiverCpuUs, 1),
    },
  }
}
