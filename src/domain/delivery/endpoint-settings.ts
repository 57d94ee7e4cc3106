import { z } from 'zod'
import { DURATION, formatDuration, parseDuration } from '../duration.ts'
import { readInput } from '../read-input.ts'
import type { Endpoint, EndpointChange, EndpointSettings } from './endpoint.ts'
import {
  FIXED_HEADERS_MAX,
  type FixedHeaders,
  fixedHeaderProblem,
  fixedValueProblem,
  lowerCaseNames,
  maskedHeaders,
} from './fixed-headers.ts'
import { filterSchemas, type Kinds, settingSchemas } from './settings-table.ts'

/** A shorter key could be guessed. */
const KEY_BYTES_MIN = 16
const DAY_MS = 86_400_000
const DURATIONS = 'must be a list of durations from 0s to 365d, such as ["5s", "5m", "30m"]'

const label = z
  .string()
  .min(1)
  .max(100)
  .refine((value) => value.trim() === value && !/\p{Cc}/u.test(value), { error: 'must not begin or end with white space' })
const WAIT = 'must be a duration such as 30s, at most 365d'
const wait = z
  .string()
  .regex(DURATION, { error: WAIT, abort: true })
  .transform(parseDuration)
  .pipe(z.number({ error: WAIT }).max(365 * DAY_MS, { error: WAIT }))
const key = z
  .string()
  .max(1024)
  .refine((value) => Buffer.byteLength(value) >= KEY_BYTES_MIN, { error: `must have at least ${KEY_BYTES_MIN} bytes` })
  .refine((value) => value.trim() === value, { error: 'must not begin or end with white space' })

const headerValue = z.string().superRefine((value, context) => {
  const problem = fixedValueProblem(value)
  if (problem !== null) context.addIssue({ code: 'custom', message: problem })
})
const HEADERS = 'must be a JSON object with the name and the value of each header, such as {"Authorization": "Bearer ..."}'

/** The portal's trusted header is forbidden too. That is checked where the config is known, because only the config names the header. */
export function headersOf<Value extends z.ZodType>(value: Value, error: string) {
  return z
    .record(z.string(), value, { error })
    .superRefine((headers, context) => {
      const report = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message })
      for (const name of Object.keys(headers)) {
        const problem = fixedHeaderProblem(name, null)
        if (problem !== null) report([name], problem)
      }
      if (Object.keys(headers).length > FIXED_HEADERS_MAX) report([], `must hold at most ${FIXED_HEADERS_MAX} headers`)
      if (lowerCaseNames(headers) === null) report([], 'must not name a header twice (upper and lower case are the same)')
    })
    .transform((headers) => lowerCaseNames(headers) ?? {})
}

/** `isNew`: what a new endpoint may leave out has a default. */
function kindsOf(isNew: boolean) {
  const or = <Value>(schema: z.ZodType<Value>, value: z.core.util.NoUndefined<Value>) => (isNew ? schema.default(value) : schema)
  return {
    flag: () => or(z.boolean(), false),
    choice: ({ names }) => or(z.enum(names), names[0]),
    either: () => z.boolean().nullable().default(null),
    amount: (_, min, max) => or(z.number().min(min).max(max).nullable(), null),
    count: (_, min, max) => or(z.int().min(min).max(max).nullable(), null),
    waits: () => or(z.array(wait, { error: DURATIONS }).min(1).max(100).nullable(), null),
    values: () => z.array(z.string().min(1).max(200)).max(1000).nullable().default(null),
  } satisfies Kinds
}

function membersOf(kinds: ReturnType<typeof kindsOf>) {
  const { signature, ...settings } = settingSchemas(kinds)
  const filters = z.strictObject(filterSchemas(kinds))
  return { name: label, url: z.string().max(2048), enabled: z.boolean(), signature, filters, ...settings }
}

const added = membersOf(kindsOf(true))

export const newEndpointSchema = z.strictObject({
  ...added,
  enabled: added.enabled.default(true),
  filters: added.filters.prefault({}),
  headers: headersOf(headerValue, HEADERS).prefault({}),
  sharedKey: key.nullable().default(null),
  from: z.union([z.literal('now'), z.int().min(0)], { error: 'must be "now", or a sequence of the feed to start with' }).default('now'),
})

export const endpointChangeSchema = z
  .strictObject(membersOf(kindsOf(false)))
  .partial()
  .extend({ headers: headersOf(headerValue.nullable(), HEADERS).optional(), sharedKey: key.nullable().optional() })

/** The request may have no body. */
export const keyRotationSchema = z.strictObject({
  sharedKey: key.nullable().optional(),
  at: z.literal('now', { error: 'must be "now", or left out' }).optional(),
})

export interface NewEndpoint {
  readonly settings: EndpointSettings
  /** The endpoint's fixed headers with their values. The settings hold only their names. */
  readonly headers: FixedHeaders
  /** Null: generate one. */
  readonly sharedKey: string | null
  /** The sequence of the feed at which to start; null: start with the events that are recorded from now on. */
  readonly from: number | null
}

/** Parses a request for a new endpoint. Throws `bad_request`, whose message repeats no value. */
export function parseNewEndpoint(body: unknown): NewEndpoint {
  const { sharedKey, headers, from, rate, schedule, ...rest } = readInput('body', newEndpointSchema, body)
  const settings = { ...rest, ratePerSecond: rate, scheduleMs: schedule, headers: Object.keys(headers) }
  return { settings, headers, sharedKey, from: from === 'now' ? null : from }
}

export interface ParsedChange {
  readonly change: EndpointChange
  /** The values of fixed headers, by lower-case name; null removes a header. Headers that are not named here stay. */
  readonly headers: Readonly<Record<string, string | null>>
  /** Null: generate a new key; undefined: keep the key. */
  readonly sharedKey: string | null | undefined
}

/** Parses a change of an endpoint. Throws `bad_request`, whose message repeats no value. */
export function parseEndpointChange(body: unknown): ParsedChange {
  const { sharedKey, headers = {}, rate, schedule, ...rest } = readInput('body', endpointChangeSchema, body)
  return { change: { ...rest, ratePerSecond: rate, scheduleMs: schedule }, headers, sharedKey }
}

/**
 * Parses a request that rotates a key. `sharedKey` null: generate a new key; undefined (only if `isAtOnce`): finish the rotation that is
 * going on. Throws `bad_request`, whose message repeats no value.
 */
export function parseKeyRotation(body: unknown): { readonly sharedKey: string | null | undefined; readonly isAtOnce: boolean } {
  const isEmpty = body === undefined || body === null || body === ''
  const { sharedKey, at } = readInput('body', keyRotationSchema, isEmpty ? {} : body)
  return { sharedKey: at === undefined ? (sharedKey ?? null) : sharedKey, isAtOnce: at !== undefined }
}

/** Returns an endpoint's settings as the API shows them: in the form that `parseNewEndpoint` reads, with the values of headers masked. */
export function presentSettings(endpoint: Endpoint) {
  const { ratePerSecond, scheduleMs, headers, ...rest } = endpoint
  const schedule = scheduleMs === null ? null : scheduleMs.map(formatDuration)
  return { ...rest, rate: ratePerSecond, schedule, headers: maskedHeaders(headers) }
}
