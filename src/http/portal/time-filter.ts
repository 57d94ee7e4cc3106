import { AppError } from '../../domain/errors.ts'
import { html, type Markup } from './html.ts'

/** A range of time, as text from a form. An empty text means no limit. */
export interface TimeFilter {
  readonly from: string
  readonly to: string
}

export function timeFields({ from, to }: TimeFilter): Markup {
  return html`<div><label for="f">From (UTC)</label><input id="f" name="from" type="datetime-local" value="${from}"></div>
<div><label for="t">To (UTC)</label><input id="t" name="to" type="datetime-local" value="${to}"></div>`
}

/** Parses the fields, in epoch milliseconds. Null: no limit. Throws `bad_request`. */
export function readTimes({ from, to }: TimeFilter): { readonly from: number | null; readonly to: number | null } {
  return { from: from === '' ? null : readTime(from, 'From'), to: to === '' ? null : readTime(to, 'To') }
}

/** Parses the value of a `datetime-local` field, which has no zone, as UTC. Returns epoch milliseconds. Throws `bad_request`. */
export function readTime(text: string, name: string): number {
  const atMs = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/.test(text) ? Date.parse(`${text}Z`) : Number.NaN
  if (Number.isNaN(atMs) || atMs < 1) throw new AppError('bad_request', `${name} must be a time such as 2026-03-01T10:00.`)
  return atMs
}
