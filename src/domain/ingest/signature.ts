import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'

/**
 * Canonical, padded Base64 of exactly 32 bytes. The platform's decoder would also accept url-safe text, unpadded text and trailing
 * characters.
 */
const FORM = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/
const FORM_CHARS = 44

/** Verifies signatures. Made once for a set of keys, because preparing a key costs more than the HMAC of an event. */
export interface Verifier {
  /** The index of the key that has signed exactly these bytes; null: none has, or the signature is malformed (DOMAIN 5.1). */
  verify(body: Uint8Array, signature: string): number | null
}

/** Whether a header value has the form of a signature: strict Base64 of 32 bytes (DOMAIN 5.1). Does not verify it. */
export function isSignature(text: string): boolean {
  return FORM.test(text)
}

/**
 * Creates a verifier for the configured keys, as UTF-8 bytes. Any of them may match, so that keys can be rotated (spec, "Authentication").
 */
export function createVerifier(keys: readonly string[]): Verifier {
  const macs = keys.map(macOf)
  const given = Buffer.alloc(FORM_CHARS)
  const right = Buffer.alloc(FORM_CHARS)
  return {
    verify(body, signature) {
      if (signature.length !== FORM_CHARS) return null
      given.write(signature, 'latin1')
      let matched: number | null = null
      // Try every key, so that the time does not reveal which one matched.
      for (const [index, mac] of macs.entries()) {
        const wanted = mac(body)
        right.write(wanted, 'latin1')
        // `write` truncates characters beyond one byte, so compare the texts as well.
        if (timingSafeEqual(right, given) && wanted === signature && matched === null) matched = index
      }
      return matched
    },
  }
}

/**
 * The value of `x-service-hmac-sha256` for these exact bytes: Base64 of the HMAC-SHA256, with the key as UTF-8 bytes (spec,
 * "Authentication").
 */
export function signBody(body: Uint8Array, key: string): string {
  return macOf(key)(body)
}

function macOf(key: string): Mac {
  return createMac(Buffer.from(key, 'utf8'))
}

/** Computes the HMAC-SHA256 of a message under one key, as Base64. The message consists of parts. Texts count as UTF-8 bytes. */
export type Mac = (...parts: readonly (string | Uint8Array)[]) => string

/** Creates the MAC of a key, given as bytes. It verifies pushes and signs deliveries, so a change here changes both. */
export function createMac(key: Uint8Array): Mac {
  // Prepare the key once. If it were given as bytes, the platform would prepare it again for every message.
  const secret = createSecretKey(key)
  return (...parts) => {
    const mac = createHmac('sha256', secret)
    for (const part of parts) mac.update(part)
    return mac.digest('base64')
  }
}
