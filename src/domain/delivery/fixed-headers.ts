/** Headers that an endpoint gets in addition to the relay's own, by lower-case name. Their values may be credentials. */
export type FixedHeaders = Readonly<Record<string, string>>

export const FIXED_HEADERS_MAX = 20
const VALUE_LENGTH_MAX = 4096

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/
const VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/

/** Headers about a single connection (RFC 9110, 7.6.1), and headers with which an HTTP client controls a single request. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
/** A header whose name begins with one of these is set by the relay itself, or describes the body. */
const RESERVED = ['content-', 'x-service-', 'webhook-', 'relay-'] as const

/** Says why a fixed header must not have this name. The text continues a sentence that begins with the name. Null: the name is allowed. */
export function fixedHeaderProblem(name: string, trustedHeader: string | null): string | null {
  const lower = name.toLowerCase()
  if (!NAME.test(name)) return 'is not the name of a header: it has letters, digits and hyphens, at most 100'
  if (OF_THE_CONNECTION.has(lower)) return 'is about the connection, so an endpoint cannot set it'
  const reserved = RESERVED.find((beginning) => lower.startsWith(beginning))
  if (reserved !== undefined) return `begins with ${reserved}, which only the relay sets`
  if (lower === trustedHeader?.toLowerCase()) return 'names a person to the portal (portal.trustedHeader), so nothing else may send it'
  return null
}

/** Says what is wrong with the value of a fixed header. The text does not repeat the value. Null: nothing is wrong. */
export function fixedValueProblem(value: string): string | null {
  if (value.length > VALUE_LENGTH_MAX) return `is longer than ${VALUE_LENGTH_MAX} characters`
  return VALUE.test(value) ? null : 'must be printable ASCII text without white space at its ends'
}

/** Makes the names of headers lower-case, because the case of a header has no meaning. Returns null if a name occurs twice. */
export function lowerCaseNames<Value>(headers: Readonly<Record<string, Value>>): Readonly<Record<string, Value>> | null {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
  return new Set(lower.map(([name]) => name)).size === lower.length ? Object.fromEntries(lower) : null
}

/** Returns headers with a mask in place of each value, because the values are secrets. */
export function maskedHeaders(names: readonly string[]): FixedHeaders {
  return Object.fromEntries(names.map((name) => [name, MASK]))
}

const MASK = '[redacted]'
