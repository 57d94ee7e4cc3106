import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseDocument } from 'yaml'
import type { Config } from '../../core/config/config.ts'
import { DEMO_CONFIG } from '../../package-files.ts'
import { startPostgres } from './postgres/throwaway-server.ts'

export interface DemoReplica {
  readonly name: string
  readonly pid: number
  readonly publicUrl: string
  readonly internalUrl: string
  /** Resolves with the reason when the relay ends. */
  readonly died: Promise<unknown>
  isRunning(): boolean
  stop(): Promise<void>
}

/** The relays of the demo: one, or several that share a store. */
export interface DemoRelays {
  readonly replicas: readonly DemoReplica[]
  /** The address to which the carrier sends its pushes. */
  readonly webhookUrl: string
  /** The path of the SQLite file, or the URL of the PostgreSQL database. */
  readonly store: string
  stop(): Promise<void>
}

interface ReplicaOptions {
  readonly name: string
  /** The folder in which the replica's config file is written. */
  readonly folder: string
  /** Settings that replace those of `configFile`, each with its path in the file. */
  readonly settings: readonly (readonly [path: readonly (string | number)[], value: unknown])[]
  /** The replica gets a copy of this config file, changed by `settings`. */
  readonly configFile: string
  readonly onTrouble: (message: string) => void
}

/** A relay that takes longer to stop is killed. */
const STOP_MAX_MS = 15_000

/** Starts `parcel-relay serve` in a separate process. Resolves when the relay is ready. */
async function startReplica({ name, folder, settings, configFile, onTrouble }: ReplicaOptions): Promise<DemoReplica> {
  const path = join(folder, `${name.replace(' ', '-')}.yaml`)
  const document = parseDocument(readFileSync(configFile, 'utf8'))
  for (const [key, value] of settings) document.setIn(key, value)
  writeFileSync(path, document.toString(), { mode: 0o600 })

  const [program = ''] = process.argv.slice(1)
  const child = spawn(process.execPath, [...process.execArgv, program, 'serve', '--config', path], { stdio: ['ignore', 'pipe', 'inherit'] })
  const died = once(child, 'exit')
  endWithThisProcess(child)
  const ready = await Promise.race([readLog(child, (message) => onTrouble(`${name}: ${message}`)), died.then(() => null)])
  if (ready === null) throw new Error(`${name} did not start`)
  const isRunning = () => child.exitCode === null && child.signalCode === null
  return {
    name,
    pid: child.pid ?? 0,
    ...ready,
    died,
    isRunning,
    async stop() {
      if (isRunning()) child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), STOP_MAX_MS)
      await died
      clearTimeout(late)
    },
  }
}

/** Makes the relay end with this process, even if this process is killed. A shell waits until its standard input closes, then kills the relay. */
function endWithThisProcess(child: ChildProcess): void {
  const leash = spawn('/bin/sh', ['-c', 'cat >/dev/null; kill -KILL "$0"', String(child.pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  leash.unref()
  child.once('exit', () => leash.kill('SIGKILL'))
}

type Addresses = Pick<DemoReplica, 'publicUrl' | 'internalUrl'>

/** Reads the relay's log. Resolves with the addresses from the line "relay ready". Passes warnings and errors to `onTrouble`. */
function readLog({ stdout }: ChildProcess, onTrouble: (message: string) => void): Promise<Addresses> {
  return new Promise((resolve) => {
    if (stdout === null) return
    createInterface({ input: stdout }).on('line', (text) => {
      const line: unknown = JSON.parse(text)
      const textOf = (name: string) => (typeof line === 'object' && line !== null ? String(Reflect.get(line, name)) : '')
      if (textOf('msg') === 'relay ready') resolve({ publicUrl: textOf('public'), internalUrl: textOf('internal') })
      else if (['warn', 'error'].includes(textOf('level'))) onTrouble(textOf('msg'))
    })
  })
}

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
export async function startReplicas({ listen, webhook }: Config, options: ReplicasOptions): Promise<DemoRelays> {
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

const BODY_BYTES_MAX = 1024 * 1024
const TIMEOUT_MS = 10_000
/** Headers that are about the connection, so they are not passed on with the request. */
const HOP_HEADERS = new Set(['connection', 'content-length', 'expect', 'host', 'keep-alive', 'transfer-encoding'])

/** Passes requests to the targets in turn. If a target cannot be reached, tries the next one. */
async function startBalancer(host: string, port: number, targets: readonly string[]) {
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
