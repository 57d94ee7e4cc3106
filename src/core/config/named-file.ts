import { X509Certificate } from 'node:crypto'
import { readRegular } from '../../regular-file.ts'
import { systemReason } from '../domain/system-reason.ts'

/** Reads a file that a setting names. Throws an error that names the setting. */
export function readNamedFile(setting: string, path: string): Buffer {
  try {
    return readRegular(path)
  } catch (cause) {
    throw new Error(`${setting}: ${path} cannot be read (${systemReason(cause)})`, { cause })
  }
}

/** Reads and checks PEM certificates that a setting names. Without the check, TLS would silently skip a bad certificate and refuse connections. */
export function readCertificates(setting: string, path: string): string {
  const text = readNamedFile(setting, path).toString()
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? []
  try {
    for (const block of blocks) new X509Certificate(block)
  } catch (cause) {
    throw new Error(`${setting}: ${path} contains an invalid certificate`, { cause })
  }
  if (blocks.length === 0) throw new Error(`${setting}: ${path} contains no certificate: expected -----BEGIN CERTIFICATE-----`)
  return text
}
