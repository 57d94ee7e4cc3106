import type { Generator } from './load/generator-process.ts'
import { median } from './load/percentiles.ts'
import type { CommitThrottle, RunOptions, RunResult } from './load/run.ts'
import { usageOf } from './servers/process-usage.ts'
import type { Observation } from './suite.ts'

/** One run against one server, with what it cost that server. */
export interface Measurement extends RunResult {
  readonly answered: number
  /** User and system time of all the server's threads, per answered request. */
  readonly cpuUsPerRequest: number
  /** The part of it on the threads whose event loops answer. */
  readonly loopsCpuUsPerRequest: number
  /** Of the load generator. */
  readonly loadCpuUsPerRequest: number
}

const WARM_UP_TURNS = 8

/** A rate of null: as fast as answers come. */
export function paceOf(ratePerSecond: number | null, durationMs: number): CommitThrottle {
  return ratePerSecond === null ? { kind: 'closed', durationMs } : { kind: 'open', ratePerSecond, durationMs }
}

/**
 * The same before every measurement, whatever that one's load is: compiled code comes with the number of requests. Connections come and go
 * meanwhile, as they do anywhere: when the first one closes, the platform throws away what it compiled for all of them, and a measurement that
 * begins with that is one of the time until it is compiled anew. 0 ms: none is wanted. Returns how many were answered.
 */
export async function warmUp(load: Generator, port: number, durationMs: number): Promise<number> {
  if (durationMs === 0) return 0
  let answered = 0
  for (let turn = 0; turn < WARM_UP_TURNS; turn++) {
    const { outcomes } = await load.run({ port, connections: 64, pace: paceOf(null, durationMs / WARM_UP_TURNS) })
    answered += outcomes['200'] ?? 0
  }
  return answered
}

export async function measure(load: Generator, pid: number, options: RunOptions): Promise<Measurement> {
  const before = usageOf(pid)
  const result = await load.run(options)
  const after = usageOf(pid)
  const answered = Object.values(result.outcomes).reduce((sum, count) => sum + count, 0)
  return {
    ...result,
    answered,
    cpuUsPerRequest: ((after.cpuMs - before.cpuMs) * 1000) / answered,
    loopsCpuUsPerRequest: ((after.loopsCpuMs - before.loopsCpuMs) * 1000) / answered,
    loadCpuUsPerRequest: (result.cpuMs * 1000) / answered,
  }
}

/** Each round measures all in turn, A B C A B C: what changes on the machine meanwhile changes for all. */
export async function interleave<Of extends Measurement, Name extends string>(
  rounds: number,
  measurements: Readonly<Record<Name, (round: number) => Promise<Of>>>,
): Promise<Readonly<Record<Name, readonly Of[]>>> {
  // Filled below, name by name.
  const taken = Object.fromEntries(Object.keys(measurements).map((name) => [name, []])) as unknown as Record<Name, Of[]>
  for (let round = 0; round < rounds; round++) for (const name in measurements) taken[name].push(await measurements[name](round))
  return taken
}

/** Of each round's pair: what it did to one of them, it did to the other. */
export function ratios(
  subject: readonly Measurement[],
  baseline: readonly Measurement[],
  value: (of: Measurement) => number,
): readonly number[] {
  return subject.map((one, round) => {
    const other = baseline[round]
    return other === undefined ? Number.NaN : value(one) / value(other)
  })
}

/** The medians of what was seen in the rounds, as a line of the table. */
export function observe(name: string, rounds: readonly Measurement[]): Observation {
  const of = (value: (of: Measurement) => number, digits: number) => Number(median(rounds.map(value)).toFixed(digits))
  return {
    name,
    facts: {
      'req/s': of((one) => one.ratePerSecond, 0),
      'cpu us/req': of((one) => one.cpuUsPerRequest, 1),
      'loops us/req': of((one) => one.loopsCpuUsPerRequest, 1),
      'load us/req': of((one) => one.loadCpuUsPerRequest, 1),
      'p50 ms': of((one) => one.latencyMs.p50, 2),
      'p90 ms': of((one) => one.latencyMs.p90, 2),
      'p99 ms': of((one) => one.latencyMs.p99, 2),
      'max ms': of((one) => one.latencyMs.max, 1),
      'late p99 ms': rounds[0]?.lateMs === null ? '' : of((one) => one.lateMs?.p99 ?? Number.NaN, 2),
    },
  }
}
