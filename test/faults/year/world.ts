import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Sandbox } from '../../../src/trial/sandbox/control-api.ts'
import { startSandbox } from '../../../src/trial/sandbox/sandbox.ts'
import { CARRIER_LOGIN, type Sections } from '../../support/relay/relay.ts'
import { drawWith, seeded } from '../../support/runner/seeded.ts'
import { type SimulatedTime, simulateTime } from '../../support/simulation/simulated-time.ts'
import type { Lengths } from './calendar.ts'
import { type Gateway, startGateway } from './gateway.ts'
import type { YearParcel } from './parcels.ts'
import { createRelayOfYear, type RelayOfYear } from './relay.ts'
import { postgresStore, type StoreOfYear, sqliteStore } from './stores.ts'
import { type Subscriber, startSubscriber } from './subscriber.ts'
import { createViolations, type Violations } from './violations.ts'

export const START_MS = Date.UTC(2031, 0, 1)
const IN_MEMORY = '/dev/shm'
const SHARED_KEY = 'the-first-shared-key-of-the-year'

export interface Settings {
  sharedKeys: readonly string[]
  atRestKeys: readonly string[]
  isNextVersion: boolean
}

/** A simulated year: a carrier, a relay with its store, a shop, and one clock for all. */
export interface World {
  readonly time: SimulatedTime
  readonly random: () => number
  readonly draw: ReturnType<typeof drawWith>
  readonly lengths: Lengths
  readonly settings: Settings
  readonly sandbox: Sandbox
  readonly gateway: Gateway
  readonly subscriber: Subscriber
  readonly relay: RelayOfYear
  readonly store: StoreOfYear
  readonly violations: Violations
  readonly parcels: YearParcel[]
  day: number
  /** The real time that each kind of work has taken, in milliseconds. */
  readonly spent: Map<string, number>
}

export interface YearOptions {
  readonly engine: 'sqlite' | 'postgres'
  readonly lengths: Lengths
  readonly seed: number
}

/** Makes a temporary folder, in memory if possible: the year does not test the disk, and syncs would take most of the time. */
function folderInMemory(): string {
  const folder = mkdtempSync(join(existsSync(IN_MEMORY) ? IN_MEMORY : tmpdir(), 'parcel-relay-year-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Builds a world for one test, without starting the relay. */
export async function openWorld({ engine, lengths, seed }: YearOptions): Promise<World> {
  const random = seeded(seed)
  const time = simulateTime(START_MS)
  const folder = folderInMemory()
  const violations = createViolations(seed, () => world.day)
  const gateway = await startGateway(SHARED_KEY)
  const sandbox = await startSandbox({
    ...CARRIER_LOGIN,
    parcels: 0,
    speed: 0,
    seed,
    now: time.now,
    webhookUrls: [gateway.url],
    retries: 1,
    retryDelayMs: 5,
  })
  const subscriber = await startSubscriber(violations, seeded(seed + 1))
  const store = engine === 'sqlite' ? sqliteStore(folder) : await postgresStore(time, folder)
  const settings: Settings = {
    sharedKeys: [SHARED_KEY],
    atRestKeys: engine === 'sqlite' ? [] : [Buffer.alloc(32, 'the first').toString('base64')],
    isNextVersion: false,
  }
  const relay = createRelayOfYear({
    folder,
    carrierUrl: sandbox.url,
    time,
    sections: () => ({ ...sectionsOf(lengths, settings), ...store.sections() }),
    env: () => (settings.isNextVersion ? { RELAY_SIMULATED_NEXT_VERSION: 'yes' } : {}),
  })
  onTestFinished(async () => {
    await Promise.all([sandbox.stop(), gateway[Symbol.asyncDispose](), subscriber[Symbol.asyncDispose]()])
  })
  const world: World = {
    time,
    random,
    draw: drawWith(random),
    lengths,
    settings,
    sandbox,
    gateway,
    subscriber,
    relay,
    store,
    violations,
    parcels: [],
    spent: new Map(),
    day: 0,
  }
  return world
}

function sectionsOf(lengths: Lengths, { sharedKeys, atRestKeys }: Settings): Sections {
  const { historyDays, feedDays, deliveriesDays, staleAfterDays } = lengths
  const days = (count: number) => `${count}d`
  return {
    webhook: { sharedKeys },
    secrets: { atRestKeys },
    poll: { finished: { staleAfter: days(staleAfterDays) } },
    retention: {
      raw: days(feedDays),
      feed: days(feedDays),
      deliveries: days(deliveriesDays),
      history: days(historyDays),
      audit: days(historyDays),
      held: days(historyDays + feedDays),
    },
    // On PostgreSQL the budget follows the server's real clock, so many simulated days share the calls of one real day.
    upstream: { ratePerSecond: 1000, callsPerDay: 1_000_000 },
    token: { lifetime: '30d' },
    delivery: { allowNetworks: ['127.0.0.0/8'] },
    limits: { freeSpaceMin: '16MB' },
  }
}
