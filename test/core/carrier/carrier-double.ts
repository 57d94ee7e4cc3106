import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createServer as createTcpServer, type Socket, type Server as TcpServer } from 'node:net'
import { type CarrierOptions, createCarrier } from '../../../src/core/carrier/call/carrier-client.ts'
import type { CallPriority } from '../../../src/core/domain/polling/carrier-answer.ts'
import type { Clock, Log } from '../../../src/core/flow/ports.ts'
import { listen } from '../../support/network/listen.ts'
import { certificate, certificateKey } from '../outbound/self-signed.ts'

/** Functions that close what a test opened, called in reverse order. */
const opened: (() => Promise<unknown>)[] = []
const closers = new Map<string, () => Promise<unknown>>()

export async function closeOpened(): Promise<void> {
  for (const close of opened.splice(0).reverse()) await close()
}

async function listening(server: TcpServer, scheme: string): Promise<string> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => null).on('close', () => sockets.delete(socket))
  })
  const port = await listen(server)
  const close = async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  }
  opened.push(close)
  const url = `${scheme}://${scheme === 'https' ? 'localhost' : '127.0.0.1'}:${port}`
  closers.set(url, close)
  return url
}

export const openHttp = (listener: RequestListener): Promise<string> => listening(createServer(listener), 'http')
export const openTls = (listener: RequestListener): Promise<string> =>
  listening(createTlsServer({ cert: certificate, key: certificateKey }, listener), 'https')
/** Opens a TCP server. `onSocket` writes the raw bytes of each answer, even ones that no HTTP server would send. */
export const openRaw = (onSocket: (socket: Socket) => void): Promise<string> => listening(createTcpServer(onSocket), 'http')

/** Returns the URL of a port on which nothing listens. */
export async function refusingUrl(): Promise<string> {
  const server = createTcpServer()
  const url = await listening(server, 'http')
  await closeOne(server)
  return url
}

const closeOne = (server: TcpServer): Promise<unknown> => new Promise((resolve) => server.close(resolve))

export const goodBody = JSON.stringify({
  statuses: [
    {
      status: 'Created',
      detailedStatus: 'Created',
      eventTimestamp: '2026-03-01T10:00:00Z',
      location: '',
      detailedStatusDescription: 'Created',
      consumerDescription: null,
      displayToConsumer: false,
    },
  ],
  trackingIds: ['370000000000000001'],
  distributionType: 'Mailbox',
})

export function json(response: ServerResponse, status: number, body: string, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
}

type Handler = (request: IncomingMessage, response: ServerResponse, count: number) => void

/** Opens a carrier on loopback that counts the requests it gets. By default all its answers are good. */
export async function openCarrier(handlers: { readonly token?: Handler; readonly status?: Handler } = {}) {
  const asked = { token: 0, status: 0, bearers: [] as string[], tokenBodies: [] as string[], urls: [] as string[] }
  const token = handlers.token ?? ((_request, response, count) => json(response, 200, JSON.stringify({ token: `token-${count}` })))
  const status = handlers.status ?? ((_request, response) => json(response, 200, goodBody))
  const url = await openHttp((request, response) => {
    if (request.method === 'POST' && request.url === '/auth/token') {
      asked.token += 1
      const count = asked.token
      let body = ''
      request
        .on('data', (chunk) => (body += String(chunk)))
        .on('end', () => {
          asked.tokenBodies.push(body)
          token(request, response, count)
        })
      return
    }
    if (request.method === 'POST') return json(response, 404, '{}')
    asked.status += 1
    asked.urls.push(request.url ?? '')
    asked.bearers.push(request.headers.authorization ?? '')
    status(request, response, asked.status)
  })
  return { url, asked, close: async () => void (await closers.get(url)?.()) }
}

function createMovableClock() {
  let movedMs = 0
  const clock: Clock = { now: () => Date.now() + movedMs, monotonic: () => performance.now() + movedMs }
  return {
    clock,
    move: (ms: number): void => {
      movedMs += ms
    },
  }
}

function createRecordingLog() {
  const lines: string[] = []
  const write = (level: string) => (fields: object, message: string) => void lines.push(JSON.stringify({ level, ...fields, message }))
  const log: Log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  return { log, lines }
}

export const password = 'canary-password-Zq8'

/** Opens a client of the carrier at `url`, and records its log in `lines`. `move` puts its clock forward. */
export function connect(url: string, options: Partial<CarrierOptions> = {}) {
  const { clock, move } = createMovableClock()
  const { log, lines } = createRecordingLog()
  const carrier = createCarrier({
    baseUrl: url,
    authUrl: `${url}/auth/token`,
    username: 'acme',
    password: () => password,
    timeoutMs: 5_000,
    ratePerSecond: 10_000,
    callsPerDay: 100_000,
    concurrency: 4,
    clock,
    log,
    ...options,
  })
  opened.push(() => carrier.close())
  const fetchAll = (priority: CallPriority = 'app', identifier = 'AB123456789SE') =>
    carrier.fetchAll({ identifier, language: 'en', priority, spender: priority === 'app' ? 'app:shop' : 'schedule' })
  return { carrier, fetchAll, move, lines }
}

/** If the condition never holds, the timeout of the test ends the wait. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}
