import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { Config } from '../config/config.ts'
import { readNamedFile } from '../config/named-file.ts'
import type { Log } from '../flow/ports.ts'

export interface ClientCertificate {
  readonly endpoint: string
  readonly untilMs: number
}

export interface ShownCertificate {
  readonly listener: string
  readonly untilMs: number
}

type ListenerName = 'public' | 'internal'

/**
 * Reads the certificate and the key in these files, and uses them from now on. Resolves with the time when the certificate expires, in epoch
 * milliseconds.
 */
export type RenewTls = (files: TlsFiles) => Promise<number>

/** The relay's own TLS certificates: those of its listeners, and the client certificates that it presents to endpoints. */
export type Certificates = ReturnType<typeof createCertificates>

export function createCertificates({ log }: { readonly log: Log }) {
  const untilMs = new Map<ListenerName, number>()
  let readClients: () => readonly ClientCertificate[] = () => []
  return {
    /** Notes when the certificate of a listener expires, in epoch milliseconds; null: the listener has no certificate. */
    inUse(listener: ListenerName, ms: number | null) {
      if (ms !== null) untilMs.set(listener, ms)
    },
    /** Reads the files again, and returns and logs the problems. A listener whose files cannot be used keeps its certificate. */
    async renew({ listen }: Config, listeners: Readonly<Record<ListenerName, RenewTls>>): Promise<readonly string[]> {
      const problems: string[] = []
      for (const listener of untilMs.keys()) {
        const { tls } = listen[listener]
        // Until a restart, a listener keeps its TLS even if the config names no certificate any more.
        if (tls === null) continue
        try {
          untilMs.set(listener, await listeners[listener](tls))
        } catch (error) {
          const problem = error instanceof Error ? error.message : String(error)
          problems.push(problem)
          log.error({ listener, problem }, 'a certificate cannot be used; the previous one stays in use')
        }
      }
      return problems
    },
    /** Sets the function that reads the client certificates. It is set later, because the endpoints are opened after this object is created. */
    takeClients(read: () => readonly ClientCertificate[]) {
      readClients = read
    },
    clients: (): readonly ClientCertificate[] => readClients(),
    /** The certificates of the listeners. */
    shown: (): readonly ShownCertificate[] => [...untilMs].map(([listener, ms]) => ({ listener, untilMs: ms })),
  }
}

export interface TlsFiles {
  readonly certFile: string
  readonly keyFile: string
}

/** A certificate and its key, in PEM. */
interface TlsPair {
  readonly cert: Buffer
  readonly key: Buffer
  /** When the certificate expires, in epoch milliseconds. */
  readonly untilMs: number
}

/** Reads a certificate and its key. If a file cannot be used, or the two do not belong together, throws an error that names the setting. */
export function readTlsPair(setting: string, { certFile, keyFile }: TlsFiles): TlsPair {
  const [cert, key] = [readNamedFile(`${setting}.certFile`, certFile), readNamedFile(`${setting}.keyFile`, keyFile)]
  const certificate = parsed(`${setting}.certFile: ${certFile} contains no valid certificate`, () => new X509Certificate(cert))
  const privateKey = parsed(`${setting}.keyFile: ${keyFile} contains no private key that can be read`, () => createPrivateKey(key))
  // While somebody writes a new pair, one file may be new and the other still old.
  if (!certificate.checkPrivateKey(privateKey))
    throw new Error(`${setting}: the key in ${keyFile} does not fit the certificate in ${certFile}`)
  return { cert, key, untilMs: Date.parse(certificate.validTo) }
}

function parsed<Value>(problem: string, parse: () => Value): Value {
  try {
    return parse()
  } catch (cause) {
    throw new Error(problem, { cause })
  }
}
