import type { Generator } from './load/generator-process.ts'
import { median } from './load/percentiles.ts'
import type { CommitThrottle, RunOptions, RunResult } from './load/run.ts'
import { usageOf } from './servers/process-usage.ts'
import type { Observation } from './suite.ts'

/** One run against one server, and its cost to that server. */
export interface Measurement extends RunResult {
  readonly answered: number
  /** User and system time of all the server's threads, per answered request. */
  readonly cpuUsPerRequest: number
  /** The part used by threads whose event loops answer. */
  readonly loopsCpuUsPerRequest: number
  /** Processor time of the load generator, per request. */
  readonly loadCpuUsPerRequest: number
}

const WARM_UP_TURNS = 8

/** A rate of null means a closed loop. */
export function paceOf(ratePerSecond: number | null, durationMs: number): CommitThrottle {
  return ratePerSecond === null ? { kind: 'closed', durationMs } : { kind: 'open', ratePerSecond, durationMs }
}

/**
 * Warms up the same way before every measurement, because V8 optimizes by number of requests. Connections open and close meanwhile: when the
 * first one closes, V8 deoptimizes the code they all share, and a measurement that began there would include its recompilation. 0 ms: no
 * warm-up. Returns the number of responses.
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

/** Measures all in turn, each round from the next on (A B C, B C A), so that changes of the machine, and what one leaves to the next, affect all alike. */
export async function interleave<Of extends Measurement, Name extends string>(
  rounds: number,
  measurements: Readonly<Record<Name, (round: number) => Promise<Of>>>,
): Promise<Readonly<Record<Name, readonly Of[]>>> {
  // The loop below fills every name.
  const names = Object.keys(measurements) as Name[]
  const taken = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, Of[]>
  for (let round = 0; round < rounds; round++) {
    const first = round % names.length
    for (const name of [...names.slice(first), ...names.slice(0, first)]) taken[name].push(await measurements[name](round))
  }
  return taken
}

/** Divides within each round, because a disturbance in a round affects both. */
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

/** The medians over the rounds, as a line of the table. */
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
