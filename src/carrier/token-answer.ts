import { isObject, member, readJson } from '../domain/json-body.ts'

const TOKEN = /^[\x21-\x7e]{1,8192}$/

/**
 * Reads the answer of the token endpoint (spec, "POST {base_url}/auth/token"); `null` when it holds no token that a header could carry.
 * A line break in it would otherwise end the header it is put in.
 */
export function parseTokenAnswer(body: Uint8Array): string | null {
  const reading = readJson(body)
  if (!reading.ok || !isObject(reading.value)) return null
  const token = member(reading.value, 'token')
  return typeof token === 'string' && TOKEN.test(token) ? token : null
}

/**
 * When a token says it ends, in epoch milliseconds, if it happens to be a JWT that decodes. A hint for renewing in time and nothing
 * more: nobody has verified it, and the spec promises no form.
 */
export function readExpiryHint(token: string): number | null {
  const [, payload, signature, ...more] = token.split('.')
  if (payload === undefined || signature === undefined || more.length > 0) return null
  const reading = readJson(Buffer.from(payload, 'base64url'))
  if (!reading.ok || !isObject(reading.value)) return null
  const exp = member(reading.value, 'exp')
  return typeof exp === 'number' && Number.isFinite(exp) ? exp * 1000 : null
}
