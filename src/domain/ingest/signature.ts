import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'

/** Canonical, padded Base64 of exactly 32 bytes: the platform's decoder would take url-safe, unpadded and trailing junk too. */
const FORM = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/
const FORM_CHARS = 44

/** Knows the shared keys; made once, because turning a string into a key costs more than the HMAC of an event. */
export interface Verifier {
  /** Which key (counted from 0) signed exactly these bytes; null: none, or the signature is not written as one (DOMAIN 5.1). */
  verify(body: Uint8Array, signature: string): number | null
}

/** Whether a header value is written as a signature is: strict Base64 of 32 bytes (DOMAIN 5.1). Says nothing of its truth. */
export function isSignature(text: string): boolean {
  return FORM.test(text)
}

/** A verifier for the configured keys, used as their UTF-8 bytes; any of them may match, so that keys can be rotated (spec, "Authentication"). */
export function createVerifier(keys: readonly string[]): Verifier {
  const macs = keys.map(macOf)
  const given = Buffer.alloc(FORM_CHARS)
  const right = Buffer.alloc(FORM_CHARS)
  return {
    verify(body, signature) {
      if (signature.length !== FORM_CHARS) return null
      given.write(signature, 'latin1')
      let matched: number | null = null
      // Every key is tried: how long it takes does not tell which one matched.
      for (const [index, mac] of macs.entries()) {
        const wanted = mac(body)
        right.write(wanted, 'latin1')
        // Characters beyond a byte were cut off: only the same text is written as a signature is, and says the same bytes.
        if (timingSafeEqual(right, given) && wanted === signature && matched === null) matched = index
      }
      return matched
    },
  }
}

/** The `x-service-hmac-sha256` value for these exact bytes: Base64 of HMAC-SHA256, the key taken as its UTF-8 bytes (spec, "Authentication"). */
export function signBody(body: Uint8Array, key: string): string {
  return macOf(key)(body)
}

function macOf(key: string): Mac {
  return createMac(Buffer.from(key, 'utf8'))
}

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
