import { isIP } from 'node:net'
import { validateDetailed } from 'node-cron'
import { z } from 'zod'
import { DURATION, parseDuration } from '../domain/amounts.ts'
import { parseLanguageTag } from '../domain/languages.ts'

// The types of settings. Every message completes the sentence "this setting ...". It never repeats the value, which may be a secret. `$comment`
// describes types and bounds that JSON Schema cannot express, for the generated reference.

export function section<const Shape extends z.ZodRawShape>(shape: Shape, example = 'one `key: value` each') {
  return z.strictObject(shape, { error: `must be a group of settings, ${example}` })
}

export function list<const Item extends z.ZodType>(item: Item, example: string) {
  return z.array(item, { error: `must be a list, such as ${example}` })
}

export const text = z
  .string({ error: 'must be text (put numbers and true or false in quotes)' })
  .min(1, { error: 'must not be empty text' })
  .refine((value) => value.trim() === value, { error: 'must not begin or end with white space' })

export const flag = z.boolean({ error: 'must be true or false' })

export function whole(min: number, max: number) {
  const error = `must be a whole number from ${min} to ${max}`
  return z.int({ error }).min(min, { error }).max(max, { error })
}

export function fraction(min: number, max: number) {
  const error = `must be a number from ${min} to ${max}`
  return z.number({ error }).min(min, { error }).max(max, { error })
}

export function oneOf<const Name extends string>(names: readonly Name[]) {
  return z.enum(names, { error: `must be one of ${names.join(', ')}` })
}

/**
 * Creates a type that parses a duration to milliseconds. For a value that a timer uses, `max` must be below 24 days, because Node fires longer timers
 * at once.
 */
export function duration(min: string, max: string) {
  const error = `must be a duration from ${min} to ${max}: a whole number and its unit (ms, s, m, h or d), such as 10s`
  const [minMs, maxMs] = [parseDuration(min) ?? 0, parseDuration(max) ?? 0]
  return z
    .string({ error })
    .regex(DURATION, { error })
    .meta({ $comment: `duration, ${min} to ${max}` })
    .transform((value, context) => {
      const ms = parseDuration(value) ?? -1
      if (ms < minMs || ms > maxMs) context.addIssue({ code: 'custom', message: error })
      return ms
    })
}

/** Creates a type that parses a size to bytes. */
export function size(min: number, max: number) {
  const error = `must be a size from ${min} to ${max} bytes: a whole number, or one with a unit (KB, MB or GB), such as 64MB`
  return z
    .union([z.int({ error }), z.string({ error }).regex(SIZE, { error })], { error })
    .meta({ $comment: `size, ${formatSize(min)} to ${formatSize(max)}` })
    .transform((value, context) => {
      const bytes = typeof value === 'number' ? value : (parseSize(value) ?? -1)
      if (bytes < min || bytes > max) context.addIssue({ code: 'custom', message: error })
      return bytes
    })
}

export function factor() {
  const error = 'must be a factor from x1 to x100, such as x4'
  return z
    .string({ error })
    .regex(FACTOR, { error })
    .meta({ $comment: 'factor, x1 to x100' })
    .transform((value, context) => {
      const times = parseFactor(value) ?? 0
      if (times < 1 || times > 100) context.addIssue({ code: 'custom', message: error })
      return times
    })
}

function checkedText(kind: string, error: string, isGood: (value: string) => boolean) {
  return z.string({ error }).refine(isGood, { error }).meta({ $comment: kind })
}

export const cidr = checkedText('address or network', 'must be an address or a network in CIDR form, such as 10.0.0.0/8', (value) => {
  const [address = '', bits, ...rest] = value.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
})

export const host = checkedText('host name or address', 'must be a host name or an IP address to listen on, such as 127.0.0.1', (value) => {
  return isIP(value) !== 0 || (/^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/.test(value) && !/^[\d.]+$/.test(value))
})

export const headerName = checkedText('header name', 'must be the name of a header, such as X-Forwarded-User', (value) =>
  /^[A-Za-z0-9-]{1,100}$/.test(value),
)

const WEB_URL = 'must be an http or https address without user, password or #fragment, such as https://carrier.example'

/** Says why a text is not an address for requests; null: it is one. */
export function webUrlProblem(value: string): string | null {
  const url = readUrl(value)
  const isOne = url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' && !value.includes('#')
  return isOne ? null : WEB_URL
}

export const webUrl = checkedText('http or https address', WEB_URL, (value) => webUrlProblem(value) === null)

/** Parses a URL that is written in full; null: the text is no such URL. `URL` alone would also accept `http:host`, backslashes and tabs. */
export function readUrl(value: string): URL | null {
  if (!/^[a-z]+:\/\/[^\s/\\]+[^\s\\]*$/i.test(value)) return null
  const url = URL.parse(value)
  return url === null || url.port === '0' ? null : url
}

export function isProxyUrl(value: string): boolean {
  const url = readUrl(value)
  return url !== null && /^https?:$/.test(url.protocol)
}

/** Whether a text is the URL of a PostgreSQL database on one host. The driver would treat a list of hosts as one name. */
export function isPostgresUrl(value: string): boolean {
  const url = readUrl(value)
  return url !== null && /^postgres(?:ql)?:$/.test(url.protocol) && /^[^,]+$/.test(url.hostname) && url.pathname.length > 1
}

const POSTGRES_PARAMETERS = ['application_name', 'host', 'options', 'password', 'pgbouncer', 'port', 'sslcert', 'sslkey', 'sslmode'].concat(
  ['sslnegotiation', 'sslrootcert', 'uselibpqcompat', 'user'],
)

const SEVERAL_HOSTS =
  'names several hosts, and the driver would look the whole list up as one name: write one address that always leads to the primary, such as a virtual address, a DNS name that moves with it, or a proxy (HAProxy, pgbouncer) in front of the servers'

/** Whether the URL of a database names several hosts. Drivers of other languages allow this, but ours does not. */
function namesSeveralHosts(value: string): boolean {
  const [, authority = '', parameters = ''] = /^postgres(?:ql)?:\/\/([^/?#]*)[^?]*(\?.*)?$/is.exec(value) ?? []
  const hosts = [authority.slice(authority.lastIndexOf('@') + 1), ...new URLSearchParams(parameters).getAll('host')]
  return hosts.some((host) => host.includes(','))
}

/** Says why a text is not the address of a store; null: it is one. */
export function storeAddressProblem(value: string): string | null {
  if (/^sqlite:[^\s].*$/.test(value)) return null
  if (namesSeveralHosts(value)) return SEVERAL_HOSTS
  if (!isPostgresUrl(value)) return 'must be sqlite:PATH or postgres://user:password@host:5432/database'
  const names = [...(readUrl(value)?.searchParams.keys() ?? [])]
  if (names.every((name) => POSTGRES_PARAMETERS.includes(name))) return null
  // Do not repeat the parameter, because it may be a part of a password that contains a question mark.
  return `has a parameter in its address that is not known; known are ${POSTGRES_PARAMETERS.join(', ')}`
}

const CRON = 'must be a cron expression of five fields, or six with seconds first, such as "* * * * *"'

export const cron = z
  .string({ error: CRON })
  .meta({ $comment: 'cron expression' })
  .superRefine((value, context) => {
    const { valid, errors } = validateDetailed(value)
    const fields = errors.flatMap(({ field }) => (field === 'expression' ? [] : [field]))
    if (!valid) context.addIssue({ code: 'custom', message: fields.length === 0 ? CRON : `${CRON}; wrong here: ${fields.join(', ')}` })
  })

export const language = z
  .string({ error: 'must be a language tag such as en or sv-SE' })
  .meta({ $comment: 'language tag' })
  .transform((value, context) => {
    const tag = parseLanguageTag(value)
    if (tag === null) context.addIssue({ code: 'custom', message: 'must be a language tag such as en or sv-SE' })
    return tag ?? ''
  })

export const timeOfDay = checkedText('time of day', 'must be a time of day such as "05:00", in quotes', (value) =>
  /^(?:[01]\d|2[0-3]):[0-5]\d$/.test(value),
)

export const zone = checkedText('time zone', 'must be a time zone such as Europe/Stockholm or UTC', (value) => {
  // Reject an offset such as +01:00. It has no summer time, and the scheduler does not accept it.
  if (!/^[A-Za-z]/.test(value)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: value })
    return true
  } catch {
    return false
  }
})

/** An exact path, without characters that a router could take for a pattern (DOMAIN 5.5). */
export const webhookPath = checkedText(
  'path',
  'must be a path such as /webhooks/status: letters, digits and . _ ~ -, no slash at its end, and not /healthz',
  (value) => /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+)+$/.test(value) && value !== '/healthz',
)

const SIZE_UNITS = { B: 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 } as const

const SIZE = /^(\d{1,9})(B|KB|MB|GB)$/
const FACTOR = /^x(\d{1,3}(?:\.\d{1,3})?)$/

/** Parses a size such as `64MB` to bytes (1KB is 1024 bytes); null: it is no size. */
function parseSize(text: string): number | null {
  const [, count, name] = SIZE.exec(text) ?? []
  const unit = Object.entries(SIZE_UNITS).find(([unitName]) => unitName === name)
  return unit === undefined ? null : Number(count) * unit[1]
}

/** Formats bytes in the largest unit of which they are a whole number. */
function formatSize(bytes: number): string {
  const [name, size] = Object.entries(SIZE_UNITS).findLast(([, unit]) => bytes >= unit && bytes % unit === 0) ?? ['', 1]
  return `${bytes / size}${name}`
}

function parseFactor(text: string): number | null {
  const [, factor] = FACTOR.exec(text) ?? []
  return factor === undefined ? null : Number(factor)
}
