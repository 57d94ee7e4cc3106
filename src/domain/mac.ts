import { createHmac, createSecretKey } from 'node:crypto'

/** The HMAC-SHA256 of a message, given in parts, under one key; as Base64. Texts stand for their UTF-8 bytes. */
export type Mac = (...parts: readonly (string | Uint8Array)[]) => string

export function createMac(key: Uint8Array): Mac {
  // Made once: the platform would prepare plain bytes anew for every message.
  const secret = createSecretKey(key)
  return (...parts) => {
    const mac = createHmac('sha256', secret)
    for (const part of parts) mac.update(part)
    return mac.digest('base64')
  }
}
