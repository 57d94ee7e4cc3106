import { isObject, member, readJson } from '../../domain/json-body.ts'

const TOKEN = /^[\x21-\x7e]{1,8192}$/

/**
 * Parses the answer of the token endpoint (spec, "POST {base_url}/auth/token"). Null: it contains no token that can be sent in a header, for example
 * because the token has a line break.
 */
export function parseTokenAnswer(body: Uint8Array): string | null {
  const reading = readJson(body)
  if (!reading.ok || !isObject(reading.value)) return null
  const token = member(reading.value, 'token')
  return typeof token === 'string' && TOKEN.test(token) ? token : null
}

/**
 * Returns the expiry time in a token that is a JWT, epoch milliseconds; null: the token is no JWT or states no time. It is only a hint when to renew:
 * the relay does not verify the token, and the spec promises no format.
 */
export function readExpiryHint(token: string): number | null {
  const [, payload, signature, ...more] = token.split('.')
  if (payload === undefined || signature === undefined || more.length > 0) return null
  const reading = readJson(Buffer.from(payload, 'base64url'))
  if (!reading.ok || !isObject(reading.value)) return null
  const exp = member(reading.value, 'exp')
  return typeof exp === 'number' && Number.isFinite(exp) ? exp * 1000 : null
}
