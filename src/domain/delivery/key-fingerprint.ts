import { createMac } from '../ingest/signature.ts'
import type { FixedHeaders } from './fixed-headers.ts'

const SIGNED = 'parcel-relay key fingerprint'
const HEX_DIGITS = 8

/**
 * Returns a short fingerprint of a shared key, such as `9f2c41d0`, so that people can compare keys without showing them. It is the beginning
 * of a signature with the key. So it reveals less about a weak key than any signed push does, and people can compute it with `openssl` too.
 */
export function fingerprintKey(key: string): string {
  return signedBy(key, SIGNED)
}

/** Returns a fingerprint of a key and the values of fixed headers. The relay stores it, to notice at its next start that one of them has changed. */
export function fingerprintSecrets(key: string, headers: FixedHeaders): string {
  const sorted = Object.entries(headers).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return signedBy(key, `${SIGNED} and headers ${JSON.stringify(sorted)}`)
}

function signedBy(key: string, text: string): string {
  const signature = createMac(Buffer.from(key, 'utf8'))(text)
  return Buffer.from(signature, 'base64').toString('hex').slice(0, HEX_DIGITS)
}
