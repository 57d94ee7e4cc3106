import { createMac, type Mac } from '../ingest/signature.ts'

const PREFIX = 'whsec_'
/** Base64, with or without the `=` at its end: what the libraries of Standard Webhooks decode. */
const BASE64 = /^[A-Za-z0-9+/]{2,}={0,2}$/
const LENGTH_MIN = 4
/** The lengths of a key that the specification allows, in bytes. */
const BYTES = { min: 24, max: 64 }

/** The rule that `isStandardKey` checks, as the end of a sentence about a key. */
export const STANDARD_KEY_RULE =
  'must be Base64, with or without whsec_ before it, because the libraries of Standard Webhooks refuse any other key: make one with `parcel-relay generate-key`'

/** Whether the libraries of Standard Webhooks take a text as a key. They decode it from Base64, without `whsec_` at its start. */
export function isStandardKey(key: string): boolean {
  return decode(key) !== null
}

/**
 * The keys that a receiver following the Standard Webhooks specification may derive from a text. `whsec_` marks Base64. Without it,
 * libraries decode Base64 unless configured otherwise, so a text that could be either is used both ways.
 */
export function standardReadings(key: string): readonly Mac[] {
  const isPrefixed = key.startsWith(PREFIX)
  const decoded = decode(key)
  if (isPrefixed && decoded !== null) return [createMac(decoded)]
  const mayBeBase64 = decoded !== null && decoded.length >= BYTES.min && decoded.length <= BYTES.max
  return [...(mayBeBase64 ? [decoded] : []), Buffer.from(key, 'utf8')].map((bytes) => createMac(bytes))
}

/** Null: the text is no Base64, or ends in bits that belong to no byte. */
function decode(key: string): Buffer | null {
  const text = key.startsWith(PREFIX) ? key.slice(PREFIX.length) : key
  if (text.length < LENGTH_MIN || !BASE64.test(text)) return null
  const decoded = Buffer.from(text, 'base64')
  const unpadded = (base64: string) => base64.replace(/=+$/, '')
  return unpadded(decoded.toString('base64')) === unpadded(text) ? decoded : null
}
