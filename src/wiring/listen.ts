import type { RequestListener } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import { readNamedFile } from '../config/named-file.ts'
import { systemCode } from '../domain/errors.ts'
import { startServer } from '../http/server/server.ts'

export interface Listening {
  /** As bound, for example `http://127.0.0.1:8080`. */
  readonly url: string
  readonly port: number
  stop(timeoutMs: number): Promise<void>
}

export interface ListenOptions extends Pick<Config['listen']['public'], 'host' | 'port' | 'tls'> {
  readonly limits: Pick<Config['limits'], 'connections' | 'requestsWaiting'>
  /** How long to wait for an address that another relay is about to leave. */
  readonly patienceMs: number
}

const LOOK_EVERY_MS = 3

/** Binds one of the two listeners as configured, with TLS if set. If it cannot, it throws an error that names the setting. */
export async function listen(name: 'public' | 'internal', options: ListenOptions, listener: RequestListener): Promise<Listening> {
  const { host, port, tls, limits, patienceMs } = options
  const read = (key: 'certFile' | 'keyFile', path: string) => readNamedFile(`listen.${name}.tls.${key}`, path)
  const bound = {
    host,
    port,
    connectionsMax: limits.connections,
    requestsWaitingMax: limits.requestsWaiting,
    ...(tls === null ? {} : { tls: { cert: read('certFile', tls.certFile), key: read('keyFile', tls.keyFile) } }),
  }
  const server = await whenFree(() => startServer(listener, bound), patienceMs).catch((cause: unknown) => {
    throw new Error(`listen.${name}: cannot listen on ${host} port ${port} (${systemCode(cause) ?? 'unknown error'})`, { cause })
  })
  const shown = server.host.includes(':') ? `[${server.host}]` : server.host
  return { url: `${tls === null ? 'http' : 'https'}://${shown}:${server.port}`, port: server.port, stop: server.stop }
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
