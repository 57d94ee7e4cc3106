import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type PostgresServer, startPostgres } from '../../src/trial/demo/postgres/throwaway-server.ts'
import { figure } from '../figures.ts'
import { type Generator, startGenerator } from '../load/generator-process.ts'
import { median } from '../load/percentiles.ts'
import { measurePushes } from '../pushes.ts'
import { onDatabase, SETTINGS } from '../servers/bench-database.ts'
import { serverCpuMs } from '../servers/postgres-usage.ts'
import { usageOf } from '../servers/process-usage.ts'
import { type RelayServer, startRelay } from '../servers/relay.ts'
import type { Bench, SuiteReport } from '../suite.ts'

const REPLICAS = 3
const CONNECTIONS = 64
/** The distance between the first parcels of the senders, so that each sender has its own parcels. */
const PARCELS_APART = 10_000_000

interface Round {
  /** Processor time of all relays and of the database, in microseconds. */
  readonly cpuUsPerPush: number
  readonly pushesPerSecond: number
}

/** What a push costs all processes together: one replica, and three with three times the senders. */
export async function replicas(bench: Bench): Promise<SuiteReport> {
  const { settings, say } = bench
  const loads = Array.from({ length: REPLICAS }, startGenerator)
  const server = await startPostgres({ settings: SETTINGS })
  const one: Round[] = []
  const three: Round[] = []
  try {
    for (let round = 0; round < settings.rounds; round++) {
      one.push(await onDatabase(server, (database) => measureTogether(bench, { server, database, loads: loads.slice(0, 1) })))
      three.push(await onDatabase(server, (database) => measureTogether(bench, { server, database, loads })))
      say(`round ${round + 1}: one ${shown(one)}, three ${shown(three)} (us of processor time a push, pushes a second)`)
    }
  } finally {
    for (const load of loads) await load.stop()
    await server[Symbol.asyncDispose]()
  }
  return {
    figures: [
      figure(
        'replicas: processor time of a push, three / one',
        three.map(({ cpuUsPerPush }, at) => cpuUsPerPush / (one[at]?.cpuUsPerPush ?? Number.NaN)),
        { unit: 'x', better: 'lower', must: 1.3, aim: 1.1 },
      ),
    ],
    observations: [
      { name: 'one replica', facts: factsOf(one) },
      { name: 'three replicas', facts: factsOf(three) },
    ],
  }
}

function shown(rounds: readonly Round[]): string {
  const last = rounds.at(-1)
  return last === undefined ? '' : `${last.cpuUsPerPush.toFixed(0)} ${last.pushesPerSecond.toFixed(0)}`
}

function factsOf(rounds: readonly Round[]) {
  return {
    'us a push': Math.round(median(rounds.map(({ cpuUsPerPush }) => cpuUsPerPush))),
    'pushes/s': Math.round(median(rounds.map(({ pushesPerSecond }) => pushesPerSecond))),
  }
}

interface Measured {
  readonly server: PostgresServer
  readonly database: string
  /** The load generators, one for each replica. */
  readonly loads: readonly Generator[]
}

async function measureTogether({ settings, relayEntry, folder }: Bench, { server, database, loads }: Measured): Promise<Round> {
  const own = mkdtempSync(join(folder, 'replicas-'))
  const relays: RelayServer[] = []
  // Start one after another, because the first creates the schema.
  for (const [at] of loads.entries()) {
    relays.push(await startRelay(relayEntry, mkdtempSync(join(own, `${at}-`)), { storePath: own, database }))
  }
  const mainPid = Number(readFileSync(join(server.folder, 'data', 'postmaster.pid'), 'utf8').split('\n')[0])
  const cpuMs = () => relays.reduce((total, { pid }) => total + usageOf(pid).cpuMs, serverCpuMs(mainPid))
  const warm = createMeeting(loads.length, cpuMs)
  const measured = await Promise.all(
    relays.map(async (relay, at) => {
      const load = loads[at]
      if (load === undefined) throw new Error('each replica has senders of its own')
      const options = { connections: CONNECTIONS, ratePerSecond: null, firstParcel: at * PARCELS_APART, repeat: false }
      return await measurePushes(load, relay, settings, { ...options, onWarm: async () => void (await warm.arrive()) })
    }),
  )
  const usedMs = cpuMs() - (await warm.arrive())
  for (const relay of relays) await relay.stop()
  rmSync(own, { recursive: true })
  const answered = measured.reduce((total, one) => total + one.answered, 0)
  return {
    cpuUsPerPush: (usedMs * 1000) / answered,
    pushesPerSecond: measured.reduce((total, one) => total + one.ratePerSecond, 0),
  }
}

/** Makes callers wait until the last one arrives. Each then gets what `note` returned at that time. */
function createMeeting<T>(count: number, note: () => T) {
  let arrived = 0
  const { promise, resolve } = Promise.withResolvers<T>()
  return {
    arrive(): Promise<T> {
      arrived += 1
      if (arrived === count) resolve(note())
      return promise
    },
  }
}
