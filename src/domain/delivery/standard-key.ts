import { createMac, type Mac } from '../ingest/signature.ts'

const PREFIX = 'whsec_'
/** Base64 with or without `=` at its end. The libraries of Standard Webhooks decode both. */
const BASE64 = /^[A-Za-z0-9+/]{2,}={0,2}$/
const LENGTH_MIN = 4
/** The lengths of a key that the specification allows, in bytes. */
const BYTES = { min: 24, max: 64 }

/** States the rule that `isStandardKey` checks, as the rest of a sentence that begins with the name of a key. */
export const STANDARD_KEY_RULE =
  'must be Base64, with or without whsec_ before it, because the libraries of Standard Webhooks refuse any other key: make one with `parcel-relay generate-key`'

/** Whether the libraries of Standard Webhooks accept a text as a key. They remove `whsec_` from its start and decode the rest as Base64. */
export function isStandardKey(key: string): boolean {
  return decode(key) !== null
}

/**
 * Returns the keys that a receiver may derive from the text of a key under the Standard Webhooks specification. The text after `whsec_` is
 * Base64. A text without `whsec_` that is Base64 of 24 to 64 bytes gives two keys, because receivers may decode the text or use its own
 * bytes.
 */
export function standardReadings(key: string): readonly Mac[] {
  const isPrefixed = key.startsWith(PREFIX)
  const decoded = decode(key)
  if (isPrefixed && decoded !== null) return [createMac(decoded)]
  const mayBeBase64 = decoded !== null && decoded.length >= BYTES.min && decoded.length <= BYTES.max
  return [...(mayBeBase64 ? [decoded] : []), Buffer.from(key, 'utf8')].map((bytes) => createMac(bytes))
}

/** Null: the text is not Base64, or has excess bits at its end. */
function decode(key: string): Buffer | null {
  const text = key.startsWith(PREFIX) ? key.slice(PREFIX.length) : key
  if (text.length < LENGTH_MIN || !BASE64.test(text)) return null
  const decoded = Buffer.from(text, 'base64')
  const unpadded = (base64: string) => base64.replace(/=+$/, '')
  return unpadded(decoded.toString('base64')) === unpadded(text) ? decoded : null
}
