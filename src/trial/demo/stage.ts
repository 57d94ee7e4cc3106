import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Config, loadConfig } from '../../core/config/config.ts'
import { createSecret } from '../../core/config/secret.ts'
import { DEMO_CONFIG } from '../../package-files.ts'
import type { Sandbox } from '../sandbox/control-api.ts'
import { startSandbox } from '../sandbox/sandbox.ts'
import { type Subscriber, startSubscriber, startTroubledApps, type TroubledApps } from './apps.ts'
import { startPostgres } from './postgres/throwaway-server.ts'
import { type DemoRelays, startReplica } from './replica-process.ts'

export interface ReplicasOptions {
  /** The folder in which the replicas' config files are written. */
  readonly folder: string
  /** The ports of the replicas' internal listeners, one for each replica. */
  readonly internalPorts: readonly number[]
  readonly carrierUrl: string
  readonly subscriberUrl: string
  readonly onCallUrl: string
  /** Called with the replicas' warnings and errors, and when a replica ends. */
  readonly onTrouble: (message: string) => void
}

/** Starts replicas, each in a separate process, behind a load balancer. They share the database of a new PostgreSQL server. */
export async function startReplicas(config: Config, options: ReplicasOptions): Promise<DemoRelays> {
  const { listen, webhook } = config
  const { folder, internalPorts, carrierUrl, subscriberUrl, onCallUrl, onTrouble } = options
  const server = await startPostgres()
  const shared = [
    [['store'], server.url()],
    [['secrets', 'atRestKeys'], [randomBytes(32).toString('base64')]],
    [['upstream', 'baseUrl'], carrierUrl],
    [['endpoints', 0, 'url'], subscriberUrl],
    [['operator', 'url'], onCallUrl],
    [['listen', 'public', 'port'], 0],
  ] as const
  const replicas = await Promise.all(
    internalPorts.map((port, at) =>
      startReplica({
        name: `replica ${at + 1}`,
        folder,
        configFile: DEMO_CONFIG,
        settings: [...shared, [['listen', 'internal', 'port'], port]],
        onTrouble,
      }),
    ),
  )
  for (const { name, died } of replicas)
    void died.then(() => onTrouble(`${name} has ended; within six seconds the other replica takes over its roles`))
  const balancer = await startBalancer(
    listen.public.host,
    listen.public.port,
    replicas.map(({ publicUrl }) => publicUrl),
  )
  return {
    replicas,
    webhookUrl: `${balancer.url}${webhook.path}`,
    store: server.url(),
    async stop() {
      await balancer.stop()
      await Promise.all(replicas.map((replica) => replica.stop()))
      await server[Symbol.asyncDispose]()
    },
  }
}

interface Balancer {
  readonly url: string
  stop(): Promise<void>
}

const BODY_BYTES_MAX = 1024 * 1024
const TIMEOUT_MS = 10_000
/** Headers that are about the connection, so they are not passed on with the request. */
const HOP_HEADERS = new Set(['connection', 'content-length', 'expect', 'host', 'keep-alive', 'transfer-encoding'])

/** Passes requests to the targets in turn. If a target cannot be reached, tries the next one. */
async function startBalancer(host: string, port: number, targets: readonly string[]): Promise<Balancer> {
  let turn = 0
  const pass = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const asked = { method: request.method ?? 'GET', headers: headersOf(request), body: await bodyOf(request) }
    for (let tries = 0; tries < targets.length; tries++) {
      const target = targets[turn++ % targets.length] ?? ''
      const answer = await forward(`${target}${request.url}`, asked).catch(() => null)
      if (answer === null) continue
      response.writeHead(answer.status).end(answer.body)
      return
    }
    response.writeHead(503, { 'retry-after': '1' }).end()
  }
  const server = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy())
  }).listen(port, host)
  await once(server, 'listening')
  return {
    url: `http://${host}:${port}`,
    async stop() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

interface Asked {
  readonly method: string
  readonly headers: Headers
  readonly body: Buffer<ArrayBuffer>
}

async function forward(url: string, { method, headers, body }: Asked): Promise<{ readonly status: number; readonly body: Buffer }> {
  const carried = body.length === 0 ? {} : { body }
  const response = await fetch(url, { method, headers, redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS), ...carried })
  return { status: response.status, body: Buffer.from(await response.arrayBuffer()) }
}

function headersOf({ headers }: IncomingMessage): Headers {
  const kept = new Headers()
  for (const [name, value] of Object.entries(headers)) if (typeof value === 'string' && !HOP_HEADERS.has(name)) kept.set(name, value)
  return kept
}

async function bodyOf(request: AsyncIterable<Buffer>): Promise<Buffer<ArrayBuffer>> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > BODY_BYTES_MAX) throw new RangeError('the body is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

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
  const settings = loadConfig(DEMO_CONFIG)
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

interface RelaysOptions extends Pick<StageOptions, 'store' | 'onTrouble'> {
  readonly folder: string
  readonly internalPorts: readonly number[]
  readonly carrierUrl: string
  readonly subscriberUrl: string
  readonly onCallUrl: string
}

/** Imports only the code for the chosen engine. */
async function startRelays(config: Config, options: RelaysOptions): Promise<DemoRelays> {
  if (options.store === 'sqlite') return await (await import('./sole-relay.ts')).startSoleRelay(config, options)
  return await (await import('./stage.ts')).startReplicas(config, options)
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
