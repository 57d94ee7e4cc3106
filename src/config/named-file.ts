import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { systemCode } from '../domain/errors.ts'

/** The content of a file that a setting names, read when the relay starts. Throws an error that says which setting to mend. */
export function readNamedFile(setting: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new Error(`${setting}: ${path} cannot be read (${systemCode(cause) ?? 'unknown error'})`, { cause })
  }
}

/** Certificates in PEM that a setting names. What is none would be passed over in silence, and every connection refused. */
export function readCertificates(setting: string, path: string): string {
  const text = readNamedFile(setting, path).toString()
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? []
  try {
    for (const block of blocks) new X509Certificate(block)
  } catch (cause) {
    throw new Error(`${setting}: ${path} holds a certificate that cannot be read`, { cause })
  }
  if (blocks.length === 0) throw new Error(`${setting}: ${path} holds no certificate: it must begin with -----BEGIN CERTIFICATE-----`)
  return text
}
