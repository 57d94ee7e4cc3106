import type { Endpoint } from '../../../core/domain/delivery/endpoint.ts'
import { EVERY_SETTING } from '../../../core/domain/delivery/endpoint-settings.ts'
import { AppError } from '../../../core/domain/errors.ts'
import { bodyOf, readList, type WebhookFields } from './webhook-form.ts'

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
  readonly field: string
  readonly now: string
  readonly sent: string
}

const FIELDS = ['url', 'name', ...Object.keys(EVERY_SETTING)]

/**
 * Finds what a form changes. `shown`: the fields as the form showed them, as JSON; empty: not known, so that the form changes every field.
 * `now`: the fields of the webhook as it is now. Throws `bad_request` for another text in `shown`.
 */
export function changesIn(sent: WebhookFields, shown: string, now: WebhookFields, { filters }: Pick<Endpoint, 'filters'>): WebhookChanges {
  const before = readShown(shown)
  const changed = FIELDS.filter((name) => before === null || sent[name] !== before[name])
  const conflicts = changed.filter((name) => before !== null && now[name] !== before[name] && now[name] !== sent[name])
  const { filters: sentFilters, ...members } = bodyOf(sent)
  const picked = (from: object) => Object.fromEntries(Object.entries(from).filter(([name]) => changed.includes(name)))
  const pickedFilters = picked(sentFilters)
  const isFiltered = Object.keys(pickedFilters).length > 0
  const body = { ...picked(members), ...(isFiltered ? { filters: { ...filters, ...pickedFilters } } : {}) }
  const kept = Object.fromEntries(FIELDS.filter((name) => !changed.includes(name)).map((name) => [name, now[name] ?? '']))
  return {
    body: Object.keys(body).length === 0 ? null : body,
    conflicts: conflicts.map((field) => ({ field, now: saidOf(field, now), sent: saidOf(field, sent) })),
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

function saidOf(field: string, { [field]: text = '' }: WebhookFields): string {
  const row = EVERY_SETTING[field]
  if (row?.kind === 'flag') return text === 'true' ? 'yes' : 'no'
  const said = row?.kind === 'values' && row.isTicked === true ? (readList(text)?.join(', ') ?? 'all') : text
  return said === '' ? 'empty' : said
}
