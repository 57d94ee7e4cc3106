import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { figure } from '../figures.ts'
import { type Generator, startGenerator } from '../load/generator-process.ts'
import type { Percentiles } from '../load/percentiles.ts'
import { median } from '../load/percentiles.ts'
import { type Measurement, measure, observe } from '../measure.ts'
import { type RelayServer, startRelay } from '../servers/relay.ts'
import { SHARED_KEY } from '../servers/relay-config.ts'
import type { Bench, Observation, SuiteReport } from '../suite.ts'
import { type Receivers, startReceivers } from './receivers.ts'

/** Pushes per second, far below the relay's maximum. */
const RATE = 100
const CONNECTIONS = 8
const BLACKHOLES = 3
/** Short, so that attempts at silent endpoints time out and are retried within a measurement. */
const TIMEOUT = '1s'
const PARCELS_APART = 1_000_000

interface Reached extends Measurement {
  /** Time from when a push was due until the endpoint had received all of it. */
  readonly reachedMs: Percentiles
}

/** Latency of a push to the endpoint at low load, compared with that of its response, with and without silent endpoints. */
export async function reach(bench: Bench): Promise<SuiteReport> {
  const load = startGenerator()
  try {
    const alone: Reached[] = []
    const beside: Reached[] = []
    const [first, second] = [await open(bench, load, 0), await open(bench, load, BLACKHOLES)]
    for (let round = 0; round < bench.settings.rounds; round++) {
      alone.push(await first.run())
      beside.push(await second.run())
      bench.say(`reached within ${shown(alone.at(-1))} alone, ${shown(beside.at(-1))} while others blackhole (p99)`)
    }
    await first.stop()
    await second.stop()
    const toAnswer = alone.map(({ reachedMs, latencyMs }) => reachedMs.p99 / latencyMs.p99)
    const toAlone = beside.map(({ reachedMs }, round) => reachedMs.p99 / (alone[round]?.reachedMs.p99 ?? Number.NaN))
    return {
      figures: [
        figure('relay: p99 push to endpoint / its own answer, idle', toAnswer, { unit: 'x', better: 'lower', must: 4, aim: 2 }),
        figure('relay: p99 to a healthy endpoint, 3 others blackhole / alone', toAlone, {
          unit: 'x',
          better: 'lower',
          must: 1.5,
          aim: 1.1,
        }),
      ],
      observations: [
        observe(`pushes at ${RATE}/s, 1 endpoint: answered`, alone),
        observeReached('... and at the endpoint', alone),
        observe(`pushes at ${RATE}/s, 3 more that blackhole: answered`, beside),
        observeReached('... and at the healthy endpoint', beside),
      ],
    }
  } finally {
    await load.stop()
  }
}

async function open({ settings, folder, relayEntry }: Bench, load: Generator, silent: number) {
  const ownFolder = mkdtempSync(join(folder, 'reach-'))
  const receivers = await startReceivers({ endpoints: 1, silent, stamped: true })
  const { delivery, endpoints } = receivers.sections
  const sections = { endpoints: endpoints ?? [], delivery: { ...delivery, timeout: TIMEOUT } }
  const relay = await startRelay(relayEntry, ownFolder, { storePath: join(ownFolder, 'relay.db'), sections })
  let runs = 0
  const run = async (durationMs: number) => await pushStamped(load, relay, receivers, { durationMs, firstParcel: PARCELS_APART * runs++ })
  await run(settings.warmUpMs)
  return {
    run: () => run(settings.durationMs),
    async stop() {
      await relay.stop()
      await receivers.stop()
      rmSync(ownFolder, { recursive: true, force: true })
    },
  }
}

async function pushStamped(
  load: Generator,
  relay: RelayServer,
  receivers: Receivers,
  { durationMs, firstParcel }: { readonly durationMs: number; readonly firstParcel: number },
): Promise<Reached> {
  await load.prepare({ kind: 'stamped', firstParcel, sharedKey: SHARED_KEY })
  const before = await receivers.tally()
  const pace = { kind: 'open', ratePerSecond: RATE, durationMs } as const
  const measured = await measure(load, relay.pid, { port: relay.port, connections: CONNECTIONS, pace })
  const { ageMs: reachedMs, ...after } = await receivers.tally()
  let { total } = after
  // The last deliveries may still be in flight.
  while (total < before.total + measured.answered) total = (await receivers.tally()).total
  return { ...measured, reachedMs }
}

function observeReached(name: string, rounds: readonly Reached[]): Observation {
  const of = (value: (of: Percentiles) => number) => Number(median(rounds.map(({ reachedMs }) => value(reachedMs))).toFixed(2))
  return {
    name,
    facts: {
      'p50 ms': of(({ p50 }) => p50),
      'p90 ms': of(({ p90 }) => p90),
      'p99 ms': of(({ p99 }) => p99),
      'max ms': of(({ max }) => max),
    },
  }
}

function shown(one: Reached | undefined): string {
  return `${one?.reachedMs.p99.toFixed(2)} ms`
}
