import { z } from 'zod'
import { DURATION, formatDuration, parseDuration } from '../amounts.ts'
import { DOCUMENTED_DETAILED_STATUSES, DOCUMENTED_STATUSES } from '../history/observation.ts'
import { readInput, refusingProto, someOf } from '../read-input.ts'
import {
  FIXED_HEADERS_MAX,
  type FixedHeaders,
  fixedHeaderProblem,
  fixedValueProblem,
  lowerCaseNames,
  maskedHeaders,
} from './endpoint-keys.ts'
import { DEFAULT_EVENTS, ENDPOINT_EVENTS, type Endpoint, type EndpointChange, type EndpointSettings } from './endpoint-state.ts'

// The table of an endpoint's settings. The config, the API, the portal and the commands follow from it: each only says what it makes of a kind of
// setting. A setting has the name that it has in the API.

/** What is said of a setting. */
interface Words {
  /** What the portal calls it. */
  readonly label: string
  /** What the portal's list of settings calls it, if not by its label. */
  readonly listed?: string
  /** The option of commands that sets it. */
  readonly option: readonly [flags: string, description: string]
  /** Describes the option of `endpoints set` that takes it back; absent: a value of `option` does that. */
  readonly without?: string
  /** Describes it in the reference of the config. */
  readonly config: string
}

interface Flag extends Words {
  readonly kind: 'flag'
  readonly answer: string
  /** The words beside its box in the portal's form. */
  readonly tick: string
  /** What `endpoints show` says if it is set. */
  readonly shown: string
}

/** One of some names, of which the first is the default. `either`: true, false or, by default, null. */
interface Choice<Name extends string = string> extends Words {
  readonly kind: 'choice' | 'either'
  readonly names: readonly [Name, ...Name[]]
  /** What the portal calls each of them. */
  readonly words: readonly string[]
  /** What the portal's form asks, if not by the label. */
  readonly asked?: string
  /** What `endpoints show` says unless it has the default; absent: it shows the name in any case. */
  readonly shown?: string
}

/** Some of a few names, at least one. */
interface Several<Name extends string = string> extends Words {
  readonly kind: 'several'
  readonly names: readonly [Name, ...Name[]]
  /** What the portal calls each of them. */
  readonly words: readonly string[]
  readonly preset: readonly Name[]
}

/** Null: what `unset` says applies, which may be a setting of the config. */
export interface Limit extends Words {
  readonly kind: 'amount' | 'count' | 'waits'
  readonly unset: string
  /** The limit of what, after the number of attempts. */
  readonly per?: string
  /** The unit in the portal's list of settings. */
  readonly unit?: string
}

/** A filter: the values of which an event must have one. Null: any. */
interface Values extends Words {
  readonly kind: 'values'
  readonly example: string
  /** Values for the hint of the portal's form. */
  readonly such?: string
  /** What each value must look like, and what is said of one that does not; absent: any text. */
  readonly form?: readonly [RegExp, string]
  /** Whether the form has a box for each known value. */
  readonly isTicked?: true
  readonly known: readonly string[]
}

export type Setting = Flag | Choice | Several | Limit | Values

export type SettingValue = string | number | boolean | readonly (string | number)[] | null

export const FILTERS = {
  status: {
    kind: 'values',
    label: 'Status',
    isTicked: true,
    config: 'Only these statuses.',
    example: '[DeliverySucceeded]',
    option: ['--status <value>', 'only events with this status; may be repeated'],
    without: 'events with any status',
    known: DOCUMENTED_STATUSES,
  },
  detailedStatus: {
    kind: 'values',
    label: 'Detailed status',
    config: 'Only these detailed statuses.',
    example: '[ArrivedT2]',
    option: ['--detailed-status <value>', 'only events with this detailed status; may be repeated'],
    without: 'events with any detailed status',
    known: DOCUMENTED_DETAILED_STATUSES,
  },
  distributionType: {
    kind: 'values',
    label: 'Kind of delivery',
    such: ', such as Mailbox, PickupPoint',
    config: 'Only these distribution types.',
    example: '[Mailbox]',
    option: ['--distribution-type <value>', 'only events of parcels with this distribution type; may be repeated'],
    without: 'events of parcels with any distribution type',
    known: [],
  },
  label: {
    kind: 'values',
    label: 'Label of the order',
    such: ', such as priority=high, or priority for any value',
    form: [/^[a-z0-9-]{1,32}(?:=.{0,100})?$/u, 'must be the name of a label, or NAME=VALUE'],
    config: 'Only parcels whose order has one of these labels: NAME, or NAME=VALUE.',
    example: '[priority=high]',
    option: ['--label <label>', 'only events of parcels whose order has this label, NAME or NAME=VALUE; may be repeated'],
    without: 'events of parcels whatever the labels of their orders',
    known: [],
  },
  displayToConsumer: {
    kind: 'either',
    label: 'For consumers',
    names: ['', 'true', 'false'],
    words: ['all events', 'only those a consumer may see', 'only those a consumer may not see'],
    config: 'Only entries that are (true) or are not (false) for consumers.',
    option: ['--display-to-consumer <which>', 'only events that consumers may see, or only those that they may not'],
    without: 'events that consumers may see, and others',
  },
} as const satisfies Readonly<Record<string, Setting>>

export const SETTINGS = {
  events: {
    kind: 'several',
    label: 'What is sent',
    names: ENDPOINT_EVENTS,
    words: ['what happens to parcels', 'watchdogs: a parcel is stalled', 'watchdogs: a stalled parcel goes on'],
    preset: DEFAULT_EVENTS,
    config:
      'What to send: entry (what happens to parcels), parcel.stalled and parcel.recovered (what watchdogs tell, in a body of their own). Without entry no entries are sent.',
    option: [
      '--events <events>',
      'what to push: one or more of entry, parcel.stalled and parcel.recovered, with commas between; may be repeated',
    ],
  },
  backfill: {
    kind: 'flag',
    label: 'Entries from before',
    tick: 'Also what happened before the webhook began',
    config: 'Also send what happened before the endpoint began, which polls of newly known parcels find.',
    answer: 'Whether it is sent what happened before `beganAt`, too.',
    option: ['--backfill', 'also push what happened before the endpoint began, which polls of newly known parcels find'],
    without: 'no longer push what happened before the endpoint began',
    shown: 'yes: also what happened before it began',
  },
  rate: {
    kind: 'amount',
    label: 'Attempts per second',
    listed: 'Rate',
    unset: 'no limit',
    per: 'per second',
    unit: ' a second',
    config: 'Attempts per second. Default: no limit.',
    option: ['--rate <number>', 'attempts per second at most'],
    without: 'no limit of attempts per second of its own',
  },
  concurrency: {
    kind: 'count',
    label: 'Attempts at the same time',
    listed: 'At the same time',
    unset: 'delivery.perEndpoint',
    per: 'at the same time',
    config: 'Attempts at the same time. Default: delivery.perEndpoint.',
    option: ['--concurrency <count>', 'attempts at the same time at most'],
    without: 'no limit of attempts at the same time of its own',
  },
  schedule: {
    kind: 'waits',
    label: 'Waits between attempts',
    unset: 'delivery.schedule',
    config: 'Waits between attempts. Default: delivery.schedule.',
    option: ['--schedule <waits>', 'the waits between attempts, such as 5s,5m,30m; may be repeated'],
    without: 'no waits between attempts of its own',
  },
  signature: {
    kind: 'choice',
    label: 'Signature',
    names: ['carrier', 'standard-webhooks'],
    words: ['as the carrier signs', 'also as Standard Webhooks'],
    config:
      "carrier: the carrier's own signature header. standard-webhooks: also the headers of that specification; sharedKey must then be Base64, with or without whsec_.",
    option: ['--signature <kind>', 'how pushes are signed'],
  },
  refusals: {
    kind: 'choice',
    label: 'An event that it refuses',
    asked: 'An event that it refuses (4xx)',
    names: ['wait', 'skip'],
    words: ['waits and is tried again', 'is given up, and the next is sent'],
    config:
      'wait: a refused event is retried, and later events of its parcel wait for it. skip: an event answered with 400, 409, 413, 415 or 422 is dead at once, unless the endpoint is failing.',
    option: ['--refusals <what>', 'when a push is refused: let its parcel’s later pushes wait, or skip the refused one'],
    shown: 'skip: a refused event does not hold up its parcel',
  },
} as const satisfies Readonly<Record<string, Setting>>

type Table = Readonly<Record<string, Setting>>

export const EVERY_SETTING: Table = { ...FILTERS, ...SETTINGS }

export function ofEach<Made>(table: Table, make: (row: Setting, name: string) => Made): Readonly<Record<string, Made>> {
  return Object.fromEntries(Object.entries(table).map(([name, row]) => [name, make(row, name)]))
}

/** The schema that a place has for each kind of setting. `Wait`: a duration there. */
export interface Kinds<Wait = number> {
  flag(row: Flag): z.ZodType<boolean>
  choice<Name extends string>(row: Choice<Name>): z.ZodType<Name>
  several<Name extends string>(row: Several<Name>): z.ZodType<readonly Name[]>
  either(row: Choice): z.ZodType<boolean | null>
  amount(row: Limit, min: number, max: number): z.ZodType<number | null>
  count(row: Limit, min: number, max: number): z.ZodType<number | null>
  waits(row: Limit): z.ZodType<readonly Wait[] | null>
  values(row: Values): z.ZodType<readonly string[] | null>
}

export function settingSchemas<Wait>(kinds: Kinds<Wait>) {
  return {
    events: kinds.several(SETTINGS.events),
    backfill: kinds.flag(SETTINGS.backfill),
    rate: kinds.amount(SETTINGS.rate, 0.01, 10_000),
    concurrency: kinds.count(SETTINGS.concurrency, 1, 1000),
    schedule: kinds.waits(SETTINGS.schedule),
    signature: kinds.choice(SETTINGS.signature),
    refusals: kinds.choice(SETTINGS.refusals),
  } satisfies Readonly<Record<keyof typeof SETTINGS, unknown>>
}

export function filterSchemas<List, Boolean>(kinds: { values(row: Values): List; either(row: Choice): Boolean }) {
  return {
    status: kinds.values(FILTERS.status),
    detailedStatus: kinds.values(FILTERS.detailedStatus),
    distributionType: kinds.values(FILTERS.distributionType),
    label: kinds.values(FILTERS.label),
    displayToConsumer: kinds.either(FILTERS.displayToConsumer),
  } satisfies Readonly<Record<keyof typeof FILTERS, unknown>>
}

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
  const named = z
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
  return refusingProto(named, 'cannot be the name of a fixed header')
}

/** A value of a filter. */
const value = z.string().min(1).max(200)

/** `isNew`: what a new endpoint may leave out has a default. */
function kindsOf(isNew: boolean) {
  const or = <Value>(schema: z.ZodType<Value>, value: z.core.util.NoUndefined<Value>) => (isNew ? schema.default(value) : schema)
  return {
    flag: () => or(z.boolean(), false),
    choice: ({ names }) => or(z.enum(names), names[0]),
    several: ({ names, preset }) => or(someOf(names), preset),
    either: () => z.boolean().nullable().default(null),
    amount: (_, min, max) => or(z.number().min(min).max(max).nullable(), null),
    count: (_, min, max) => or(z.int().min(min).max(max).nullable(), null),
    waits: () => or(z.array(wait, { error: DURATIONS }).min(1).max(100).nullable(), null),
    values: ({ form }) =>
      z
        .array(form === undefined ? value : value.regex(...form))
        .max(1000)
        .nullable()
        .default(null),
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
export function presentSettings({ ratePerSecond, scheduleMs, headers, ...rest }: Endpoint) {
  const schedule = scheduleMs === null ? null : scheduleMs.map(formatDuration)
  return { ...rest, rate: ratePerSecond, schedule, headers: maskedHeaders(headers) }
}
