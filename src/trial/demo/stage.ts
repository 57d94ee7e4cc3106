import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Config, loadConfig } from '../../core/config/config.ts'
import type { Section } from '../../core/config/schema.ts'
import { createSecret } from '../../core/config/secret.ts'
import { DEMO_CONFIG } from '../../package-files.ts'
import type { Sandbox } from '../sandbox/control-api.ts'
import { startSandbox } from '../sandbox/sandbox.ts'
import { type Subscriber, startSubscriber, startTroubledApps, type TroubledApps } from './apps.ts'
import type { DemoRelays, ReplicasOptions } from './start-replicas.ts'

export interface StageOptions {
  readonly store: 'sqlite' | 'postgres'
  readonly parcels: number
  /** The time from the first event to the last delivery of a parcel. */
  readonly seconds: number
  readonly seed: number
  /** The fraction of its pushes that the carrier loses, from 0 to 1. */
  readonly loss: number
  /** Whether to use any free ports instead of the usual ones. */
  readonly freePorts: boolean
  /** The sections of the config that wings offer. */
  readonly sections: readonly Section[]
  /** Called with the relays' warnings and errors. */
  readonly onTrouble: (message: string) => void
}

export interface Stage extends Pick<DemoRelays, 'replicas' | 'webhookUrl' | 'store'> {
  readonly carrier: Sandbox
  readonly subscriber: Subscriber
  readonly troubledApps: TroubledApps
  /** Resolves when every relay has ended, with the reason why the first relay of the list ended. */
  readonly died: Promise<unknown>
  /** The key that signs the carrier's pushes. */
  readonly sharedKey: string
  /** The usual ports that other programs use. The demo uses free ports instead. */
  readonly takenPorts: readonly number[]
  stop(): Promise<void>
}

const HOST = '127.0.0.1'
const SECOND_REPLICA_PORT = 8082
const CARRIER_PORT = 8090
const SUBSCRIBER_PORT = 8091
const TROUBLED_APPS_PORT = 8092
/** The time from the first booking to the last delivery in the sandbox's plan. The demo runs it faster. */
const PLANNED_SECONDS = 56 * 3600

/** How many times the demo tries to start. If another program takes a free port before the demo uses it, the demo tries other ports. */
const STARTS_MAX = 5

/** Matches what Node.js and the relay say about a port in use. */
const PORT_TAKEN = /EADDRINUSE|is in use by another program/

/** Starts a relay or two replicas with a new store, a subscriber, apps in trouble, and a carrier that is paused. */
export async function setStage(options: StageOptions, find = findPort): Promise<Stage> {
  for (let start = 1; ; start++) {
    const started = new AsyncDisposableStack()
    try {
      return await startStage(options, find, started)
    } catch (error) {
      await started.disposeAsync()
      if (start === STARTS_MAX || !PORT_TAKEN.test(String(error))) throw error
    }
  }
}

/** `started` collects what has been started. Disposing it ends everything in reverse order. */
async function startStage(options: StageOptions, find: typeof findPort, started: AsyncDisposableStack): Promise<Stage> {
  const settings = loadConfig(DEMO_CONFIG, options.sections)
  const { listen } = settings
  const wanted = [listen.public.port, listen.internal.port, CARRIER_PORT, SUBSCRIBER_PORT, TROUBLED_APPS_PORT].concat(
    options.store === 'postgres' ? SECOND_REPLICA_PORT : [],
  )
  const found: FoundPort[] = []
  for (const port of wanted) found.push(await find(HOST, options.freePorts ? 0 : port))
  const [publicPort = 0, internalPort = 0, carrierPort = 0, subscriberPort = 0, troubledPort = 0, secondPort = 0] = found.map(
    ({ port }) => port,
  )

  const folder = mkdtempSync(join(tmpdir(), 'parcel-relay-demo-'))
  const removeFolder = () => rmSync(folder, { recursive: true, force: true })
  // Delete the folder also if the process ends without `stop`.
  process.once('exit', removeFolder)
  started.defer(removeFolder)
  const carrierUrl = `http://${HOST}:${carrierPort}`
  const [endpoint] = settings.endpoints
  const subscriber = await startSubscriber(HOST, subscriberPort, endpoint?.sharedKey.reveal() ?? '')
  started.defer(() => subscriber.stop())
  const troubledApps = await startTroubledApps(HOST, troubledPort)
  started.defer(() => troubledApps.stop())
  const config: Config = {
    ...settings,
    listen: { public: { ...listen.public, port: publicPort }, internal: { ...listen.internal, port: internalPort } },
    upstream: { ...settings.upstream, baseUrl: carrierUrl, authUrl: `${carrierUrl}/auth/token` },
    endpoints: endpoint === undefined ? [] : [{ ...endpoint, url: subscriber.url }],
    operator: settings.operator === null ? null : { ...settings.operator, url: createSecret(troubledApps.onCallUrl) },
    log: { level: 'error' },
  }
  const relays = await startRelays(config, {
    ...options,
    folder,
    internalPorts: [internalPort, secondPort],
    carrierUrl,
    subscriberUrl: subscriber.url,
    onCallUrl: troubledApps.onCallUrl,
  })
  started.defer(() => relays.stop())
  const carrier = await startCarrier(config, options, carrierPort, relays.webhookUrl)
  started.defer(() => carrier.stop())
  return {
    ...relays,
    carrier,
    subscriber,
    troubledApps,
    died: Promise.all(relays.replicas.map(({ died }) => died)).then(([reason]) => reason),
    sharedKey: sharedKeyOf(config),
    takenPorts: wanted.filter((_, index) => found[index]?.moved === true),
    stop: () => started.disposeAsync(),
  }
}

/** Imports only the code for the chosen engine. */
async function startRelays(config: Config, options: ReplicasOptions & Pick<StageOptions, 'store'>): Promise<DemoRelays> {
  if (options.store === 'sqlite') return await (await import('./sole-relay.ts')).startSoleRelay(config, options)
  return await (await import('./start-replicas.ts')).startReplicas(config, options)
}

function startCarrier(config: Config, { parcels, seconds, seed, loss }: StageOptions, port: number, webhookUrl: string): Promise<Sandbox> {
  return startSandbox({
    host: HOST,
    port,
    webhookUrls: [webhookUrl],
    sharedKey: sharedKeyOf(config),
    username: config.upstream.username,
    password: config.upstream.password.reveal(),
    parcels,
    seed,
    live: true,
    paused: true,
    speed: PLANNED_SECONDS / seconds,
    faults: { loss, duplicates: 0.1, reorder: 4 },
    retries: 3,
  })
}

function sharedKeyOf(config: Config): string {
  return config.webhook.sharedKeys[0]?.reveal() ?? ''
}

interface FoundPort {
  readonly port: number
  /** Whether the wanted port was in use. */
  readonly moved: boolean
}

/** Finds a free port: `wanted` if it is free, else any other. `wanted` 0 means any port. */
export async function findPort(host: string, wanted: number): Promise<FoundPort> {
  try {
    return { port: await tryPort(host, wanted), moved: false }
  } catch {
    return { port: await tryPort(host, 0), moved: true }
  }
}

async function tryPort(host: string, wanted: number): Promise<number> {
  const server = createTcpServer().listen(wanted, host)
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (typeof address !== 'object' || address === null) throw new Error('the server is bound to no network address')
  return address.port
}
