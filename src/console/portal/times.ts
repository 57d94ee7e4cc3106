import { spanText } from '../../core/domain/amounts.ts'
import type { EndpointState } from '../../core/domain/delivery/endpoint-state.ts'
import { AppError } from '../../core/domain/errors.ts'
import { parseTime } from '../../core/domain/instant.ts'
import type { ManageEndpoints } from '../../core/flow/delivery/manage-endpoints.ts'
import { html, type Markup, markup } from './html.ts'

// A page shows all times in one zone, which its foot names. The server writes UTC; a script in the page can change everything to the viewer's
// zone. `data-f` tells the script the format, and `data-b` the instant whose day need not be repeated.

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const [SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS] = [1000, 60_000, 3_600_000, 86_400_000]

function clockText(atMs: number): string {
  return new Date(atMs).toISOString().slice(11, 19)
}

function dayText(atMs: number): string {
  const day = new Date(atMs)
  return `${day.getUTCDate()} ${MONTHS[day.getUTCMonth()] ?? ''}`
}

/** Returns the day, with the year if it is another one than now. */
function dayAt(atMs: number, nowMs: number): string {
  const year = new Date(atMs).getUTCFullYear()
  return year === new Date(nowMs).getUTCFullYear() ? dayText(atMs) : `${dayText(atMs)} ${year}`
}

/** Returns a time such as `25 Nov 2026 14:41:37.250 UTC`. */
function fullText(atMs: number): string {
  const fraction = atMs % SECOND_MS === 0 ? '' : new Date(atMs).toISOString().slice(19, 23)
  return `${dayText(atMs)} ${new Date(atMs).getUTCFullYear()} ${clockText(atMs)}${fraction} UTC`
}

/** Shows a configured length of time without rounding: `5 s`, `30 min`, `36 h`, `1 d`. */
export function settingText(lengthMs: number): string {
  if (lengthMs > 0 && lengthMs % DAY_MS === 0) return `${lengthMs / DAY_MS} d`
  if (lengthMs > 0 && lengthMs % HOUR_MS === 0) return `${lengthMs / HOUR_MS} h`
  if (lengthMs > 0 && lengthMs % MINUTE_MS === 0) return `${lengthMs / MINUTE_MS} min`
  return lengthMs % SECOND_MS === 0 ? `${lengthMs / SECOND_MS} s` : `${lengthMs} ms`
}

function relativeText(atMs: number, nowMs: number): string {
  if (Math.abs(atMs - nowMs) < 1500) return atMs <= nowMs ? 'just now' : 'now'
  return atMs > nowMs ? `in ${spanText(atMs - nowMs)}` : `${spanText(nowMs - atMs)} ago`
}

type Form = 'at' | 'hm' | 'hms' | 'day' | 'rel' | 'full' | 'hour'

function time(atMs: number, form: Form, text: string, title: string, after: Markup | null = null): Markup {
  return html`<time datetime="${new Date(atMs).toISOString()}" data-f="${form}"${after} title="${title}">${text}</time>`
}

function isSameDay(atMs: number, nowMs: number): boolean {
  return Math.floor(atMs / DAY_MS) === Math.floor(nowMs / DAY_MS)
}

function titleOf(atMs: number, nowMs: number): string {
  return `${fullText(atMs)}, ${relativeText(atMs, nowMs)}`
}

/** For tables of events: the time of day, with the day if it is not today. */
export function timeInTable(atMs: number, nowMs: number): Markup {
  const text = isSameDay(atMs, nowMs) ? clockText(atMs) : `${dayAt(atMs, nowMs)} ${clockText(atMs).slice(0, 5)}`
  return time(atMs, 'at', text, titleOf(atMs, nowMs))
}

/** Two times in one sentence that are of the same minute need seconds. */
export function minuteOf(atMs: number): number {
  return Math.floor(atMs / MINUTE_MS)
}

/** For sentences: the time of day to the minute (`withSeconds`: to the second) and its zone, with the day if it is not today. */
export function timeInSentence(atMs: number, nowMs: number, withSeconds = false): Markup {
  const day = isSameDay(atMs, nowMs) ? '' : `${dayAt(atMs, nowMs)} `
  const [form, clock] = withSeconds ? (['hms', clockText(atMs)] as const) : (['hm', clockText(atMs).slice(0, 5)] as const)
  return time(atMs, form, `${day}${clock} UTC`, titleOf(atMs, nowMs))
}

/** For a timeline: day and time of day. Leaves out the day if `beforeMs`, the instant shown before this one, is on the same day. */
export function timeInLine(atMs: number, beforeMs: number | null, nowMs: number): Markup {
  const day = beforeMs !== null && isSameDay(atMs, beforeMs) ? '' : `${dayAt(atMs, nowMs)} `
  const after = beforeMs === null ? null : markup(` data-b="${new Date(beforeMs).toISOString()}"`)
  return time(atMs, 'day', day + clockText(atMs), titleOf(atMs, nowMs), after)
}

/** For sentences about a state: `12 min ago`, `in 5 min`, `just now`, `now`. */
export function relativeTime(atMs: number, nowMs: number): Markup {
  return time(atMs, 'rel', relativeText(atMs, nowMs), fullText(atMs))
}

/** For a page about one record: date and time to the millisecond, with the zone. */
export function fullTime(atMs: number, nowMs: number): Markup {
  return time(atMs, 'full', fullText(atMs), relativeText(atMs, nowMs))
}

/** The name of the zone, to put next to times. The script changes it together with the times. */
export const zone = html`<span class="zone">UTC</span>`

/** For an hour that was counted, when it began: `14:00`. */
export function hourBegun(atMs: number): Markup {
  return time(atMs, 'hour', clockText(atMs).slice(0, 5), fullText(atMs))
}

/** A range of time, as text from a form. An empty text means no limit. */
export interface TimeFilter {
  readonly from: string
  readonly to: string
}

export function timeFields({ from, to }: TimeFilter): Markup {
  return html`<div>${timeField('f', 'from', 'From', from)}</div>
<div>${timeField('t', 'to', 'To', to)}</div>`
}

/**
 * Makes a field for a time in the zone of the page. Without script that is UTC; a script shows and takes the viewer's zone, and sends UTC.
 * `hasSeconds`: seconds can be typed.
 */
export function timeField(id: string, name: string, label: string, value: string, hasSeconds = false): Markup {
  return html`<label for="${id}">${label} (${zone})</label><input id="${id}" name="${name}" type="datetime-local"${hasSeconds ? SECONDS : null} value="${value}">`
}

const SECONDS = markup(' step="1"')

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
  const atMs = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/.test(text) ? parseTime(`${text}Z`) : Number.NaN
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
