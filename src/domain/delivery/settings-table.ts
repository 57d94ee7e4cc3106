import type { z } from 'zod'
import { DOCUMENTED_DETAILED_STATUSES, DOCUMENTED_STATUSES } from '../history/status-entry.ts'

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

export interface Flag extends Words {
  readonly kind: 'flag'
  readonly answer: string
  /** The words beside its box in the portal's form. */
  readonly tick: string
  /** What `endpoints show` says if it is set. */
  readonly shown: string
}

/** One of some names, of which the first is the default. `either`: true, false or, by default, null. */
export interface Choice<Name extends string = string> extends Words {
  readonly kind: 'choice' | 'either'
  readonly names: readonly [Name, ...Name[]]
  /** What the portal calls each of them. */
  readonly words: readonly string[]
  /** What the portal's form asks, if not by the label. */
  readonly asked?: string
  /** What `endpoints show` says unless it has the default; absent: it shows the name in any case. */
  readonly shown?: string
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
export interface Values extends Words {
  readonly kind: 'values'
  readonly example: string
  /** Values for the hint of the portal's form. */
  readonly such?: string
  /** Whether the form has a box for each known value. */
  readonly isTicked?: true
  readonly known: readonly string[]
}

export type Setting = Flag | Choice | Limit | Values

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
    option: ['--schedule <waits>', 'the waits between attempts, such as 5s,5m,30m'],
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
  either(row: Choice): z.ZodType<boolean | null>
  amount(row: Limit, min: number, max: number): z.ZodType<number | null>
  count(row: Limit, min: number, max: number): z.ZodType<number | null>
  waits(row: Limit): z.ZodType<readonly Wait[] | null>
  values(row: Values): z.ZodType<readonly string[] | null>
}

export function settingSchemas<Wait>(kinds: Kinds<Wait>) {
  return {
    backfill: kinds.flag(SETTINGS.backfill),
    rate: kinds.amount(SETTINGS.rate, 0.01, 10_000),
    concurrency: kinds.count(SETTINGS.concurrency, 1, 1000),
    schedule: kinds.waits(SETTINGS.schedule),
    signature: kinds.choice(SETTINGS.signature),
    refusals: kinds.choice(SETTINGS.refusals),
  }
}

export function filterSchemas<List, Boolean>(kinds: { values(row: Values): List; either(row: Choice): Boolean }) {
  return {
    status: kinds.values(FILTERS.status),
    detailedStatus: kinds.values(FILTERS.detailedStatus),
    distributionType: kinds.values(FILTERS.distributionType),
    displayToConsumer: kinds.either(FILTERS.displayToConsumer),
  }
}
