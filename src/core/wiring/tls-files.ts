import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readNamedFile } from '../config/named-file.ts'

export interface TlsFiles {
  readonly certFile: string
  readonly keyFile: string
}

/** A certificate and its key, in PEM. */
export interface TlsPair {
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
