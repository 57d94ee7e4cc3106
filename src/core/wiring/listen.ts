import type { RequestListener } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import { systemCode } from '../domain/errors.ts'
import { systemReason } from '../domain/system-reason.ts'
import { startServer } from '../http/server/server.ts'
import { type RenewTls, readTlsPair, type TlsFiles } from './certificates.ts'

export interface Listening {
  /** The address with the port that is in use, for example `http://127.0.0.1:8080`. */
  readonly url: string
  readonly port: number
  /** When the listener's certificate expires, in epoch milliseconds; null: it has no certificate. */
  readonly tlsUntilMs: number | null
  readonly renewTls: RenewTls
  stop(timeoutMs: number): Promise<void>
}

export interface ListenOptions extends Pick<Config['listen']['public'], 'host' | 'port' | 'tls'> {
  readonly limits: Pick<Config['limits'], 'connections' | 'requestsWaiting'>
  /** How long to wait for an address that another relay is about to free, in milliseconds. */
  readonly patienceMs: number
}

const LOOK_EVERY_MS = 3
/** How long it may take to begin to listen. The host name may have to be looked up on a server that does not answer. */
const BIND_MS = 10_000

/** Opens one of the two listeners as configured, with TLS if that is set. If this fails, throws an error that names the setting. */
export async function listen(name: 'public' | 'internal', options: ListenOptions, listener: RequestListener): Promise<Listening> {
  const { host, port, tls, limits, patienceMs } = options
  const read = (files: TlsFiles) => readTlsPair(`listen.${name}.tls`, files)
  const pair = tls === null ? null : read(tls)
  const bound = {
    host,
    port,
    connectionsMax: limits.connections,
    requestsWaitingMax: limits.requestsWaiting,
    ...(pair === null ? {} : { tls: pair }),
  }
  const server = await whenFree(() => inTime(startServer(listener, bound)), patienceMs).catch((cause: unknown) => {
    const why =
      cause instanceof NotBound ? `cannot listen on ${host} port ${port}: ${cause.message}` : describeRefusal({ host, port }, cause)
    throw new Error(`listen.${name}: ${why}`, { cause })
  })
  const shown = server.host.includes(':') ? `[${server.host}]` : server.host
  return {
    url: `${tls === null ? 'http' : 'https'}://${shown}:${server.port}`,
    port: server.port,
    tlsUntilMs: pair?.untilMs ?? null,
    async renewTls(files) {
      const next = read(files)
      server.replaceTls(next)
      return next.untilMs
    },
    stop: server.stop,
  }
}

/** Describes why the relay cannot listen on an address, and what to do. */
export function describeRefusal({ host, port }: Pick<ListenOptions, 'host' | 'port'>, cause: unknown): string {
  const code = systemCode(cause)
  if (code === 'EADDRINUSE') return `port ${port} of ${host} is in use by another program: stop that one, or choose another port`
  if (code === 'EACCES') return `only a privileged user may listen on port ${port}: choose one from 1024 on, or give the user that right`
  if (code === 'EADDRNOTAVAIL') return `this machine has no address ${host}: name one that it has, or 0.0.0.0`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `the name ${host} is not found: name an address of this machine`
  return `cannot listen on ${host} port ${port}: ${systemReason(cause)}`
}

async function whenFree<T>(start: () => Promise<T>, patienceMs: number): Promise<T> {
  for (let leftMs = patienceMs; ; leftMs -= LOOK_EVERY_MS) {
    try {
      return await start()
    } catch (error) {
      if (leftMs <= 0 || systemCode(error) !== 'EADDRINUSE') throw error
      await pause(LOOK_EVERY_MS)
    }
  }
}

class NotBound extends Error {
  override readonly name = 'NotBound'
}

async function inTime<T>(starting: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new NotBound(`no answer within ${BIND_MS / 1000} s`)), BIND_MS)
  try {
    return await Promise.race([starting, promise])
  } finally {
    clearTimeout(timer)
  }
}
