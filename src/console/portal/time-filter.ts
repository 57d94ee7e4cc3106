import { AppError } from '../../core/domain/errors.ts'
import { html, type Markup } from './html.ts'
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
