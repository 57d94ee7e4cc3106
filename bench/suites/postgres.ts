import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { startPostgres } from '../../src/trial/demo/postgres/throwaway-server.ts'
import { askAllOnce, measureAsks } from '../asks.ts'
import { figure } from '../figures.ts'
import { EVENTS_PER_PARCEL } from '../load/event.ts'
import { type Generator, startGenerator } from '../load/generator-process.ts'
import { median } from '../load/percentiles.ts'
import { assertVisible, measurePushes } from '../pushes.ts'
import { untilDelivered } from '../relay/delivering.ts'
import { startReceivers } from '../relay/receivers.ts'
import { insertBare } from '../servers/bare-inserts.ts'
import { onDatabase, SETTINGS } from '../servers/bench-database.ts'
import { type RelayServer, startRelay } from '../servers/relay.ts'
import type { Bench, Observation, SuiteReport } from '../suite.ts'

const CONNECTIONS = 64

/** A relay's results in one round, per second. */
interface Round {
  readonly pushes: number
  readonly reads: number
  readonly deliveries: number
  /** 99th percentile of push latency, in milliseconds. */
  readonly p99Ms: number
  /** How many pushes were committed at a time, on average. */
  readonly batch: number
}

/** A relay on PostgreSQL, with the server on the same processors, compared with a relay on SQLite and with bare inserts of the same bytes. */
export async function postgresSuite(bench: Bench): Promise<SuiteReport> {
  const { settings, say } = bench
  const load = startGenerator()
  const server = await startPostgres({ settings: SETTINGS })
  const taken = { postgres: [] as Round[], sqlite: [] as Round[], bare: [] as number[], bareOfAll: [] as number[] }
  try {
    for (let round = 0; round < settings.rounds; round++) {
      taken.postgres.push(await onDatabase(server, (first) => onDatabase(server, (second) => measureRelay(bench, load, [first, second]))))
      const bare = (batch: number) => onDatabase(server, (database) => insertBare(database, batch, settings.durationMs))
      taken.bare.push(await bare(Math.round(taken.postgres.at(-1)?.batch ?? 1)))
      taken.bareOfAll.push(await bare(CONNECTIONS))
      taken.sqlite.push(await measureRelay(bench, load, [undefined, undefined]))
      say(
        `round ${round + 1}: bare ${rounded(taken.bare)}/s, postgres ${shown(taken.postgres)}, sqlite ${shown(taken.sqlite)} (pushes, reads, deliveries a second)`,
      )
    }
  } finally {
    await load.stop()
    await server[Symbol.asyncDispose]()
  }
  const { postgres, sqlite, bare, bareOfAll } = taken
  const beside = (of: (round: Round) => number) => postgres.map((one, at) => of(one) / of(sqlite[at] ?? one))
  return {
    figures: [
      figure(
        'postgres: pushes / bare inserts of the same bytes in batches of the same size',
        postgres.map(({ pushes }, at) => pushes / (bare[at] ?? Number.NaN)),
        { unit: 'x', better: 'higher', must: 0.1, aim: 0.18 },
      ),
      figure(
        'postgres: pushes / on SQLite',
        beside(({ pushes }) => pushes),
        { unit: 'x', better: 'higher', must: 0.35, aim: 0.6 },
      ),
      figure(
        'postgres: hot reads / on SQLite',
        beside(({ reads }) => reads),
        { unit: 'x', better: 'higher', must: 0.4, aim: 0.7 },
      ),
      figure(
        'postgres: deliveries / on SQLite',
        beside(({ deliveries }) => deliveries),
        { unit: 'x', better: 'higher', must: 0.5, aim: 0.6 },
      ),
    ],
    observations: [
      observeRounds('postgres', postgres),
      observeRounds('sqlite', sqlite),
      { name: 'bare inserts in batches of that size', facts: { 'pushes/s': Math.round(median(bare)) } },
      { name: `bare inserts in batches of ${CONNECTIONS}`, facts: { 'pushes/s': Math.round(median(bareOfAll)) } },
    ],
  }
}

function rounded(values: readonly number[]): number {
  return Math.round(values.at(-1) ?? 0)
}

function shown(rounds: readonly Round[]): string {
  const last = rounds.at(-1)
  return last === undefined ? '' : [last.pushes, last.reads, last.deliveries].map(Math.round).join(' ')
}

function observeRounds(name: string, rounds: readonly Round[]): Observation {
  const of = (value: (round: Round) => number) => Number(median(rounds.map(value)).toFixed(1))
  return {
    name,
    facts: {
      'pushes/s': of(({ pushes }) => pushes),
      batch: of(({ batch }) => batch),
      'p99 ms': of(({ p99Ms }) => p99Ms),
      'reads/s': of(({ reads }) => reads),
      'deliveries/s': of(({ deliveries }) => deliveries),
    },
  }
}

async function measureRelay(bench: Bench, load: Generator, [first, second]: readonly (string | undefined)[]): Promise<Round> {
  return { ...(await pushAndRead(bench, load, first)), deliveries: await deliver(bench, load, second) }
}

const PUSHES = { connections: CONNECTIONS, ratePerSecond: null, firstParcel: 0, repeat: false } as const

async function pushAndRead(
  { settings, relayEntry, folder }: Bench,
  load: Generator,
  database?: string,
): Promise<Omit<Round, 'deliveries'>> {
  const own = mkdtempSync(join(folder, 'relay-'))
  const relay = await startRelay(relayEntry, own, { storePath: join(own, 'relay.db'), ...(database === undefined ? {} : { database }) })
  const pushes = await measurePushes(load, relay, settings, PUSHES)
  await assertVisible(relay, PUSHES, pushes.acknowledged, CONNECTIONS)
  const token = await relay.logIn()
  const batch = await meanBatch(relay, token)
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
  rmSync(own, { recursive: true })
  return { pushes: pushes.ratePerSecond, p99Ms: pushes.latencyMs.p99, batch, reads: asks.ratePerSecond }
}

async function meanBatch(relay: RelayServer, token: string): Promise<number> {
  const metrics = await (await relay.ask('/metrics', token)).text()
  const [sum, count] = ['sum', 'count'].map((name) => Number(new RegExp(`^relay_commit_batch_size_${name} (\\S+)`, 'm').exec(metrics)?.[1]))
  return (sum ?? Number.NaN) / (count ?? Number.NaN)
}

/** Deliveries per second to one endpoint, from the first push until all have arrived. */
async function deliver({ settings, relayEntry, folder }: Bench, load: Generator, database?: string): Promise<number> {
  const own = mkdtempSync(join(folder, 'relay-'))
  const receivers = await startReceivers({ endpoints: 1 })
  const relay = await startRelay(relayEntry, own, {
    storePath: join(own, 'relay.db'),
    sections: receivers.sections,
    ...(database === undefined ? {} : { database }),
  })
  const startMs = performance.now()
  const { acknowledged } = await measurePushes(load, relay, settings, PUSHES)
  await untilDelivered(receivers, acknowledged)
  const seconds = (performance.now() - startMs) / 1000
  await relay.stop()
  await receivers.stop()
  rmSync(own, { recursive: true })
  return acknowledged / seconds
}
