import { isObject, member, readJson } from '../../domain/json-body.ts'

const TOKEN = /^[\x21-\x7e]{1,8192}$/

/**
 * Parses the answer of the token endpoint (spec, "POST {base_url}/auth/token"). `null`: it has no token that fits into a header. A token
 * with a line break does not.
 */
export function parseTokenAnswer(body: Uint8Array): string | null {
  const reading = readJson(body)
  if (!reading.ok || !isObject(reading.value)) return null
  const token = member(reading.value, 'token')
  return typeof token === 'string' && TOKEN.test(token) ? token : null
}

/**
 * When a token expires by its own statement, epoch milliseconds, if it is a JWT. This only helps to renew in time: nothing verifies the
 * token, and the spec promises no format.
 */
export function readExpiryHint(token: string): number | null {
  const [, payload, signature, ...more] = token.split('.')
  if (payload === undefined || signature === undefined || more.length > 0) return null
  const reading = readJson(Buffer.from(payload, 'base64url'))
  if (!reading.ok || !isObject(reading.value)) return null
  const exp = member(reading.value, 'exp')
  return typeof exp === 'number' && Number.isFinite(exp) ? exp * 1000 : null
}
