import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'

/** Canonical, padded Base64 of 32 bytes. The decoder of Node.js is laxer: it also accepts url-safe text, unpadded text and trailing characters. */
const FORM = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/
const FORM_CHARS = 44

/** A key with a name. The name is shown to people; the key is never shown. */
export interface NamedKey {
  /** Such as `webhook.sharedKeys[0]`. */
  readonly name: string
  readonly key: string
}

/** Create it once and use it again: preparing a key takes longer than an HMAC. */
export interface Verifier {
  /** Returns the index of the key that signed the body; null: no key matches, or the signature is malformed (DOMAIN 5.1). */
  verify(body: Uint8Array, signature: string): number | null
}

/** Whether a header value has the form of a signature: strict Base64 of 32 bytes (DOMAIN 5.1). Does not verify the signature. */
export function isSignature(text: string): boolean {
  return FORM.test(text)
}

/** Creates a verifier for the configured keys (in UTF-8). A signature with any one of them is valid, so that keys can be rotated. */
export function createVerifier(keys: readonly string[]): Verifier {
  const macs = keys.map(macOf)
  const given = Buffer.alloc(FORM_CHARS)
  const right = Buffer.alloc(FORM_CHARS)
  return {
    verify(body, signature) {
      if (signature.length !== FORM_CHARS) return null
      given.write(signature, 'latin1')
      let matched: number | null = null
      // Try all keys even after one has matched. Otherwise the time would reveal which key it was.
      for (const [index, mac] of macs.entries()) {
        const wanted = mac(body)
        right.write(wanted, 'latin1')
        // `write` truncates characters above U+00FF, so different texts may give the same bytes. Compare the texts as well.
        if (timingSafeEqual(right, given) && wanted === signature && matched === null) matched = index
      }
      return matched
    },
  }
}

/**
 * Returns the value of `x-service-hmac-sha256` for exactly these bytes: the HMAC-SHA256 in Base64. The key is used as UTF-8 bytes (spec,
 * "Authentication").
 */
export function signBody(body: Uint8Array, key: string): string {
  return macOf(key)(body)
}

function macOf(key: string): Mac {
  return createMac(Buffer.from(key, 'utf8'))
}

/** Returns the HMAC-SHA256 of the joined parts of a message, in Base64. Strings are UTF-8. */
export type Mac = (...parts: readonly (string | Uint8Array)[]) => string

/** Creates a function that computes MACs with a key. It verifies pushes and also signs deliveries, so a change here changes both. */
export function createMac(key: Uint8Array): Mac {
  // If the key were given as bytes, Node.js would prepare it again for every message.
  const secret = createSecretKey(key)
  return (...parts) => {
    const mac = createHmac('sha256', secret)
    for (const part of parts) mac.update(part)
    return mac.digest('base64')
  }
}
