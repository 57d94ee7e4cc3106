import { createHmac, hash } from 'node:crypto'

/** The HMAC-SHA256 of a message, given in parts, under one key; as Base64. Texts stand for their UTF-8 bytes. */
export type Mac = (...parts: readonly (string | Uint8Array)[]) => string

const BLOCK_BYTES = 64
const DIGEST_BYTES = 32
/** Longer messages are left to the platform: for them what it costs beside the hashing does not matter. */
const MESSAGE_BYTES_MAX = 16 * 1024

/** A block and a message. What is in it is of no use once a call has returned, so that one serves all keys. */
const scratch = Buffer.alloc(BLOCK_BYTES + MESSAGE_BYTES_MAX)

/**
 * As RFC 2104 defines it, of two plain hashes: `H(key ^ opad, H(key ^ ipad, message))`. The platform's own makes two objects with native
 * halves for each message, which for an event takes three times as long, and as long again when they are collected.
 */
export function createMac(key: Uint8Array): Mac {
  const block = new Uint8Array(BLOCK_BYTES)
  block.set(key.byteLength > BLOCK_BYTES ? hash('sha256', key, 'buffer') : key)
  const inner = block.map((byte) => byte ^ 0x36)
  const outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES)
  outer.set(block.map((byte) => byte ^ 0x5c))

  return (...parts) => {
    scratch.set(inner)
    let end = BLOCK_BYTES
    for (const part of parts) {
      const bytes = typeof part === 'string' ? Buffer.byteLength(part) : part.byteLength
      if (end + bytes > scratch.byteLength) return byPlatform(key, parts)
      if (typeof part === 'string') scratch.write(part, end)
      else scratch.set(part, end)
      end += bytes
    }
    outer.write(hash('sha256', scratch.subarray(0, end), 'binary'), BLOCK_BYTES, 'binary')
    return hash('sha256', outer, 'base64')
  }
}

function byPlatform(key: Uint8Array, parts: readonly (string | Uint8Array)[]): string {
  const mac = createHmac('sha256', key)
  for (const part of parts) mac.update(part)
  return mac.digest('base64')
}
