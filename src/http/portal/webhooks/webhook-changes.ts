import type { Endpoint } from '../../../domain/delivery/endpoint.ts'
import { AppError } from '../../../domain/errors.ts'
import { bodyOf, type WebhookFields } from './webhook-form.ts'

/** What a form changes, compared with the webhook as the form showed it. */
export interface WebhookChanges {
  /** The API's request body, with the changed members only. Null: nothing was changed. */
  readonly body: object | null
  /** The fields that somebody else has changed since the form was shown, and this form too, to another value. */
  readonly conflicts: readonly Conflict[]
  /** The fields as sent. Those that the form does not change are as the webhook has them now. */
  readonly fields: WebhookFields
}

export interface Conflict {
  readonly field: (typeof FIELDS)[number]
  readonly now: string
  readonly sent: string
}

const FIELDS = [
  'url',
  'name',
  'status',
  'detailedStatus',
  'distributionType',
  'displayToConsumer',
  'backfill',
  'rate',
  'concurrency',
  'schedule',
  'signature',
  'refusals',
] as const satisfies readonly (keyof WebhookFields)[]

/**
 * Finds what a form changes. `shown`: the fields as the form showed them, as JSON; empty: not known, so that the form changes every field.
 * `now`: the fields of the webhook as it is now. Throws `bad_request` for another text in `shown`.
 */
export function changesIn(sent: WebhookFields, shown: string, now: WebhookFields, { filters }: Pick<Endpoint, 'filters'>): WebhookChanges {
  const before = readShown(shown)
  const changed = FIELDS.filter((name) => before === null || !isEqual(sent[name], before[name]))
  const conflicts = changed.filter((name) => before !== null && !isEqual(now[name], before[name]) && !isEqual(now[name], sent[name]))
  const { filters: sentFilters, ...members } = bodyOf(sent)
  const picked = (from: object) => Object.fromEntries(Object.entries(from).filter(([name]) => changed.some((one) => one === name)))
  const pickedFilters = picked(sentFilters)
  const isFiltered = Object.keys(pickedFilters).length > 0
  const body = { ...picked(members), ...(isFiltered ? { filters: { ...filters, ...pickedFilters } } : {}) }
  const kept = Object.fromEntries(FIELDS.filter((name) => !changed.includes(name)).map((name) => [name, now[name]]))
  return {
    body: Object.keys(body).length === 0 ? null : body,
    conflicts: conflicts.map((field) => ({ field, now: textOf(now[field]), sent: textOf(sent[field]) })),
    fields: { ...sent, ...kept },
  }
}

function readShown(shown: string): Readonly<Record<string, unknown>> | null {
  if (shown === '') return null
  try {
    const read: unknown = JSON.parse(shown)
    if (typeof read === 'object' && read !== null) return { ...read }
  } catch {
    // The error below says the same.
  }
  throw new AppError('bad_request', 'The form is not as the portal made it. Load the page again.')
}

function isEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

function textOf(value: WebhookFields[keyof WebhookFields]): string {
  if (value === true || value === false) return value ? 'yes' : 'no'
  if (value === null) return 'all'
  const text = typeof value === 'string' ? value : value.join(', ')
  return text === '' ? 'empty' : text
}
