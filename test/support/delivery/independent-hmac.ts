import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'

const BLOCK_BYTES = 64

const sha256 = (...parts: readonly Uint8Array[]): Buffer => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** Returns the HMAC-SHA256 in Base64, computed by its definition (RFC 2104). Only the hash function is shared with the code under test. */
export function definedHmac(body: Uint8Array, key: string): string {
  const given = Buffer.from(key, 'utf8')
  const block = Buffer.alloc(BLOCK_BYTES)
  block.set(given.length > BLOCK_BYTES ? sha256(given) : given)
  const padded = (pad: number) => block.map((byte) => byte ^ pad)
  return sha256(padded(0x5c), sha256(padded(0x36), body)).toString('base64')
}

/** Returns the HMAC-SHA256 in Base64 as the `openssl` command computes it. */
export function opensslHmac(body: Uint8Array, key: string): string {
  const hexKey = Buffer.from(key, 'utf8').toString('hex')
  return execFileSync('openssl', ['dgst', '-sha256', '-mac', 'HMAC', '-macopt', `hexkey:${hexKey}`, '-binary'], { input: body }).toString(
    'base64',
  )
}
