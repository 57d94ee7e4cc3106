import { connect } from 'node:net'
import { onTestFinished } from 'vitest'
import type { RecordOutcome } from '../../../src/core/domain/history/recording.ts'
import type { IncomingPush } from '../../../src/core/domain/ingest/inbox.ts'
import { parseWebhookEvent } from '../../../src/core/domain/ingest/parse-push.ts'
import type { RefusalSamples } from '../../../src/core/domain/ingest/refused-spells.ts'
import { createVerifier, signBody } from '../../../src/core/domain/ingest/signature.ts'
import { createReceive } from '../../../src/core/flow/ingest/receive.ts'
import type { Clock } from '../../../src/core/flow/ports.ts'
import { createCountFailure, createPerMinute } from '../../../src/core/http/server/authorize.ts'
import { createRawBodies } from '../../../src/core/http/server/raw-body.ts'
import { createAddressOf } from '../../../src/core/http/server/request-headers.ts'
import { createPublicListener, type ServerTimeouts, startServer } from '../../../src/core/http/server/server.ts'
import { createLogBook } from '../../support/runner/log-book.ts'

export const KEY = 'a-shared-key-of-some-length'
export const PATH = '/webhooks/status'
export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() }

export async function start(...[listener, options]: [Parameters<typeof startServer>[0], Partial<Parameters<typeof startServer>[1]>?]) {
  const server = await startServer(listener, { host: '127.0.0.1', port: 0, connectionsMax: 4096, requestsWaitingMax: 2000, ...options })
  onTestFinished(() => server.stop(0))
  return server
}

export interface PublicWorld {
  readonly bodyBytesMax?: number
  readonly bytesInFlightMax?: number
  readonly connectionsMax?: number
  readonly failuresPerMinute?: number
  readonly keys?: readonly string[]
  readonly trustProxy?: readonly string[]
  readonly timeouts?: Partial<ServerTimeouts>
  readonly refusals?: Pick<RefusalSamples, 'isDue' | 'take'>
  /** By default every push is accepted. */
  readonly submit?: (push: IncomingPush) => Promise<RecordOutcome>
}

const NOT_EXAMINED = { isDue: () => false, take: () => undefined }

/** Starts the public listener on a real port, with a recorder that lists the pushes it gets. */
export async function startPublic(world: PublicWorld = {}) {
  const recorded: IncomingPush[] = []
  const counted: string[] = []
  const misdirected: { readonly target: string; readonly isSigned: boolean }[] = []
  const book = createLogBook()
  const meter = { pushReceived: (outcome: string) => void counted.push(outcome) }
  const submit = async (push: IncomingPush): Promise<RecordOutcome> => {
    const outcome = await (world.submit?.(push) ??
      Promise.resolve({ kind: 'recorded', parcelId: 1, changed: true, newEntries: 1, queued: 0 } as const))
    recorded.push(push)
    return outcome
  }
  const connectionsMax = world.connectionsMax ?? 4096
  const refusals = world.refusals ?? NOT_EXAMINED
  const listener = createPublicListener({
    log: book.log,
    path: PATH,
    meter,
    receive: createReceive({
      verifier: createVerifier(world.keys ?? [KEY]),
      parseEvent: parseWebhookEvent,
      recorder: { submit },
      admit: () => undefined,
      meter,
      clock: systemClock,
      refusals,
      comebacks: { refused: () => {}, taken: () => {} },
    }),
    refusals,
    misdirected: (request) => void misdirected.push(request),
    addressOf: createAddressOf(world.trustProxy),
    bodies: createRawBodies({
      bodyBytesMax: world.bodyBytesMax ?? 262_144,
      bytesInFlightMax: world.bytesInFlightMax ?? 64_000_000,
      connectionsMax,
    }),
    countFailure: createCountFailure(createPerMinute(world.failuresPerMinute ?? 100_000), createAddressOf(world.trustProxy)),
  })
  const server = await start(listener, { connectionsMax, ...(world.timeouts === undefined ? {} : { timeouts: world.timeouts }) })
  return { server, port: server.port, url: `http://127.0.0.1:${server.port}`, recorded, counted, misdirected, lines: book.lines }
}

/** Sends a push with the carrier's headers. `headers` replaces some of them, or adds others. */
export function push(url: string, body: string | Uint8Array, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}${PATH}`, {
    method: 'POST',
    body: Buffer.from(body),
    headers: { 'content-type': 'application/json', 'x-service-hmac-sha256': signBody(Buffer.from(body), KEY), ...headers },
  })
}

export interface RawAnswer {
  /** All received bytes, decoded as Latin-1. */
  readonly text: string
  readonly status: number
  readonly closed: boolean
}

/**
 * Writes bytes unchanged to a new connection. Collects the answer until the server closes, `until` holds, or 3 s have passed. Writes `reply`
 * when the first bytes of the answer have arrived.
 */
export function raw(
  port: number,
  bytes: string | readonly (string | Uint8Array)[],
  options: { until?: (text: string) => boolean; reply?: string } = {},
) {
  return new Promise<RawAnswer>((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    let left = options.reply
    const finish = (closed: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      resolve({ text, status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0), closed })
    }
    const timer = setTimeout(() => finish(false), 3000)
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (left !== undefined) socket.write(left)
      left = undefined
      if (options.until?.(text)) finish(false)
    })
    socket.on('error', () => {})
    socket.on('close', () => finish(true))
    for (const part of typeof bytes === 'string' ? [bytes] : bytes)
      socket.write(typeof part === 'string' ? Buffer.from(part, 'latin1') : part)
  })
}

export function rawPush(headers: readonly string[], body: string | Uint8Array = '', method = 'POST'): readonly (string | Uint8Array)[] {
  return [`${method} ${PATH} HTTP/1.1\r\n${['Host: relay', ...headers].join('\r\n')}\r\n\r\n`, body]
}

export async function eventually(holds: () => boolean): Promise<void> {
  const giveUpAtMs = performance.now() + 60_000
  while (!holds()) {
    if (performance.now() > giveUpAtMs) throw new Error('the condition did not hold within a minute')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
