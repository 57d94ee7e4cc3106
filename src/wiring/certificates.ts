import type { Config } from '../config/config.ts'
import type { ShownCertificate } from '../flow/admin/trouble-watch.ts'
import type { Log } from '../flow/ports.ts'
import type { ClientCertificate } from './delivery/configured-endpoints.ts'
import type { TlsFiles } from './tls-files.ts'

type ListenerName = 'public' | 'internal'

/**
 * Reads the certificate and the key in these files and uses them from now on, even if they have not changed. Resolves with the time when
 * the certificate expires.
 */
export type RenewTls = (files: TlsFiles) => Promise<number>

/** The certificates that the listeners show. */
export interface Certificates {
  /** Notes the certificate of a listener; null: it has none. */
  inUse(listener: ListenerName, untilMs: number | null): void
  /**
   * Reads the files again. If they cannot be used, the relay keeps the previous certificate, and the log says why. Resolves with the
   * problems.
   */
  renew(config: Config, listeners: Readonly<Record<ListenerName, RenewTls>>): Promise<readonly string[]>
  shown(): readonly ShownCertificate[]
  /** Sets where to read the client certificates that the relay shows to endpoints. The endpoints are opened after this is created. */
  takeClients(read: () => readonly ClientCertificate[]): void
  /** The client certificates that the relay shows to endpoints. */
  clients(): readonly ClientCertificate[]
}

export function createCertificates({ log }: { readonly log: Log }): Certificates {
  const untilMs = new Map<ListenerName, number>()
  let readClients: () => readonly ClientCertificate[] = () => []
  return {
    inUse(listener, ms) {
      if (ms !== null) untilMs.set(listener, ms)
    },
    async renew({ listen }, listeners) {
      const problems: string[] = []
      for (const listener of untilMs.keys()) {
        const { tls } = listen[listener]
        // Switching TLS off needs a restart.
        if (tls === null) continue
        try {
          untilMs.set(listener, await listeners[listener](tls))
        } catch (error) {
          const problem = error instanceof Error ? error.message : String(error)
          problems.push(problem)
          log.error({ listener, problem }, 'a certificate cannot be used; the one before stays in use')
        }
      }
      return problems
    },
    takeClients(read) {
      readClients = read
    },
    clients: () => readClients(),
    shown: () => [...untilMs].map(([listener, ms]) => ({ listener, untilMs: ms })),
  }
}
