import { createMac } from '../ingest/signature.ts'

const SIGNED = 'parcel-relay key fingerprint'
const HEX_DIGITS = 8

/**
 * A short fingerprint of a shared key, such as `9f2c41d0`, by which people compare keys without showing them. It is the beginning of a
 * signature by the key. So it tells less about a weak key than any signed push does, and `openssl` can compute it too.
 */
export function fingerprintKey(key: string): string {
  const signature = createMac(Buffer.from(key, 'utf8'))(SIGNED)
  return Buffer.from(signature, 'base64').toString('hex').slice(0, HEX_DIGITS)
}
