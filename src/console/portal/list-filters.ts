import type { EndpointState } from '../../core/domain/delivery/endpoint-state.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { ManageEndpoints } from '../../core/flow/delivery/manage-endpoints.ts'
import { html, type Markup, markup } from './html.ts'
import { zone } from './times.ts'

/** A range of time, as text from a form. An empty text means no limit. */
export interface TimeFilter {
  readonly from: string
  readonly to: string
}

export function timeFields({ from, to }: TimeFilter): Markup {
  return html`<div>${timeField('f', 'from', 'From', from)}</div>
<div>${timeField('t', 'to', 'To', to)}</div>`
}

/** Makes a field for a time in the zone of the page. Without script that is UTC; a script shows and takes the viewer's zone, and sends UTC. */
export function timeField(id: string, name: string, label: string, value: string): Markup {
  return html`<label for="${id}">${label} (${zone})</label><input id="${id}" name="${name}" type="datetime-local" value="${value}">`
}

/**
 * Parses the fields, in epoch milliseconds. Null: no limit. A list shows times to the minute or the second, so `to` ends after the minute or the
 * second that it names. Throws `bad_request`.
 */
export function readTimes({ from, to }: TimeFilter): { readonly from: number | null; readonly to: number | null } {
  const namedMs = to.length <= 'YYYY-MM-DDTHH:MM'.length ? 60_000 : 1000
  return { from: from === '' ? null : readTime(from, 'From'), to: to === '' ? null : readTime(to, 'To') + namedMs }
}

/** Parses the value of a field for a time, in UTC. Returns epoch milliseconds. Throws `bad_request`. */
export function readTime(text: string, name: string): number {
  const atMs = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/.test(text) ? Date.parse(`${text}Z`) : Number.NaN
  if (Number.isNaN(atMs) || atMs < 1) throw new AppError('bad_request', `${name} must be a time such as 2026-03-01T10:00.`)
  return atMs
}

/** A choice of a form: the id and name of a webhook. */
export interface WebhookName {
  readonly id: string
  readonly name: string
  /** Absent: it was removed. */
  readonly origin?: EndpointState['origin']
}

/** A form offers at most this many webhooks. */
const OFFERED_MAX = 1000

/** Returns webhooks sorted by name, at most `OFFERED_MAX`. */
export async function namesOfWebhooks({ states }: Pick<ManageEndpoints, 'states'>): Promise<readonly WebhookName[]> {
  const names = (await states()).map(({ endpoint: { id, name }, origin }) => ({ id, name, origin }))
  return names.toSorted((a, b) => a.name.localeCompare(b.name, 'en')).slice(0, OFFERED_MAX)
}

export function options(choices: readonly (readonly [value: string, text: string])[], chosen: string): Markup {
  return html`${choices.map(([value, text]) => html`<option value="${value}"${value === chosen ? SELECTED : null}>${text}</option>`)}`
}

const SELECTED = markup(' selected')
