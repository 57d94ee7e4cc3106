import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Config } from '../../core/config/config.ts'
import { DEMO_CONFIG } from '../../package-files.ts'
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
