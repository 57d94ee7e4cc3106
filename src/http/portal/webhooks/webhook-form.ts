import type { Endpoint } from '../../../domain/delivery/endpoint.ts'
import { AppError } from '../../../domain/errors.ts'
import { DOCUMENTED_STATUSES } from '../../../domain/history/status-entry.ts'
import type { Address } from '../addresses.ts'
import { link } from '../addresses.ts'
import type { Form } from '../form.ts'
import { html, type Markup, markup } from '../html.ts'

/** The fields of a form about a webhook, as text. The key is left out, so that no page sends a typed key back. */
export interface WebhookFields {
  readonly url: string
  readonly name: string
  readonly isKeyGiven: boolean
  /** Null: all statuses. */
  readonly status: readonly string[] | null
  readonly detailedStatus: string
  readonly distributionType: string
  readonly displayToConsumer: string
  readonly backfill: boolean
  readonly rate: string
  readonly concurrency: string
  readonly schedule: string
  readonly signature: string
  readonly refusals: string
  readonly from: string
}

/** A sentence for each wrong field, by the field's id. */
export type FieldErrors = Readonly<Record<string, string>>

export const EMPTY_FIELDS: WebhookFields = {
  url: '',
  name: '',
  isKeyGiven: false,
  status: null,
  detailedStatus: '',
  distributionType: '',
  displayToConsumer: '',
  backfill: false,
  rate: '',
  concurrency: '',
  schedule: '',
  signature: 'carrier',
  refusals: 'wait',
  from: 'now',
}

export function fieldsOf(form: Form): WebhookFields {
  const text = (name: string) => form.get(name).trim()
  return {
    url: text('url'),
    name: text('name'),
    isKeyGiven: form.get('key') === 'given',
    status: form.all('status').length > 0 || form.get('statuses') === 'some' ? form.all('status') : null,
    detailedStatus: text('detailedStatus'),
    distributionType: text('distributionType'),
    displayToConsumer: text('displayToConsumer'),
    backfill: form.get('backfill') !== '',
    rate: text('rate'),
    concurrency: text('concurrency'),
    schedule: text('schedule'),
    signature: text('signature') || EMPTY_FIELDS.signature,
    refusals: text('refusals') || EMPTY_FIELDS.refusals,
    from: text('from') || EMPTY_FIELDS.from,
  }
}

/** Fills the fields with a webhook's current settings. `schedule`: durations as the API writes them, such as `5s`. */
export function fieldsOfEndpoint(endpoint: Endpoint, schedule: readonly string[] | null): WebhookFields {
  const { filters } = endpoint
  return {
    ...EMPTY_FIELDS,
    url: endpoint.url,
    name: endpoint.name,
    status: filters.status,
    detailedStatus: listText(filters.detailedStatus),
    distributionType: listText(filters.distributionType),
    displayToConsumer: filters.displayToConsumer === null ? '' : String(filters.displayToConsumer),
    backfill: endpoint.backfill,
    rate: endpoint.ratePerSecond === null ? '' : String(endpoint.ratePerSecond),
    concurrency: endpoint.concurrency === null ? '' : String(endpoint.concurrency),
    schedule: schedule === null ? '' : schedule.join(', '),
    signature: endpoint.signature,
    refusals: endpoint.refusals,
  }
}

/** Makes the API's request body. A mistyped number goes into the body as text, so that the API says what is wrong. */
export function bodyOf(fields: WebhookFields) {
  const number = (text: string) => (text === '' ? null : /^\d+(\.\d+)?$/.test(text) ? Number(text) : text)
  return {
    url: fields.url,
    name: fields.name,
    filters: {
      status: fields.status,
      detailedStatus: readList(fields.detailedStatus),
      distributionType: readList(fields.distributionType),
      displayToConsumer: fields.displayToConsumer === '' ? null : fields.displayToConsumer === 'true',
    },
    backfill: fields.backfill,
    rate: number(fields.rate),
    concurrency: number(fields.concurrency),
    schedule: readList(fields.schedule),
    signature: fields.signature,
    refusals: fields.refusals,
  }
}

const NONE = '[]'

/** Writes a list of values with commas between. A value that would be read as another one is in quotes. Empty: all values. */
function listText(values: readonly string[] | null): string {
  if (values === null) return ''
  const isPlain = (value: string) => !/^"|,/.test(value) && value.trim() === value && value !== NONE
  return values.length === 0 ? NONE : values.map((value) => (isPlain(value) ? value : JSON.stringify(value))).join(', ')
}

function readList(text: string): readonly string[] | null {
  if (text === '' || text === NONE) return text === '' ? null : []
  const values = text.match(/\s*"(?:[^"\\]|\\.)*"\s*(?=,|$)|[^,]+/g) ?? []
  return values.map((value) => unquoted(value.trim())).filter((value) => value !== '')
}

function unquoted(value: string): string {
  if (!/^".*"$/s.test(value)) return value
  try {
    return String(JSON.parse(value))
  } catch {
    return value
  }
}

/** Returns the API's `from`: the place in the feed where a new webhook starts, as a sequence number or `now`. */
export function startOf({ from }: WebhookFields): string | number {
  return /^\d{1,15}$/.test(from) ? Number(from) : from
}

/** Returns the mistakes by field. Null: the error is not about a field of the form. */
export function fieldErrors(error: unknown): FieldErrors | null {
  if (!(error instanceof AppError)) return null
  if (error.code === 'endpoint_exists') return { name: error.message }
  if (error.code === 'feed_gone') return { from: error.message }
  const errors = error.facts?.errors
  if (error.code !== 'bad_request' || !Array.isArray(errors)) return null
  const named = errors.flatMap((one: object) => {
    const members = new Map<string, unknown>(Object.entries(one))
    const member = /^#\/(?:filters\/)?([^/]+)/.exec(String(members.get('pointer')))?.[1]
    return member === undefined ? [] : [[member, byLabel(member, String(members.get('detail')))] as const]
  })
  return named.length === 0 ? null : Object.fromEntries(named)
}

/** Replaces the name of an API member at the start of a sentence with the label of its field in the form. */
function byLabel(member: string, sentence: string): string {
  const label = LABELS[member]
  return label !== undefined && sentence.startsWith(`${member} `) ? `${label}${sentence.slice(member.length)}` : sentence
}

export const LABELS: Readonly<Record<string, string>> = {
  url: 'URL',
  name: 'Name',
  sharedKey: 'Shared key',
  status: 'Status',
  detailedStatus: 'Detailed status',
  distributionType: 'Kind of delivery',
  rate: 'Attempts per second',
  concurrency: 'Attempts at the same time',
  schedule: 'Waits between attempts',
  from: 'Start',
  displayToConsumer: 'For consumers',
  backfill: 'Entries from before',
  signature: 'Signature',
  refusals: 'An event that it refuses',
}
/** The fields of each part of the form that people can fold. A part with a mistake is unfolded. */
const EVENTS = ['status', 'detailedStatus', 'distributionType']
const SENDING = ['rate', 'concurrency', 'schedule', 'from']

/** Shows how many fields are wrong, with a link to each. `nothing`: the sentence that says that nothing was done. */
export function mistakes(errors: FieldErrors, nothing: string): Markup {
  const names = Object.keys(errors)
  return html`<div class="note bad" role="alert"><strong>${nothing} Correct ${names.length === 1 ? 'one field' : `${names.length} fields`}:</strong><ul>${names.map(
    (name) => html`<li><a href="#${name}">${LABELS[name] ?? name}</a></li>`,
  )}</ul></div>`
}

export interface WebhookForm {
  readonly to: Address
  readonly cancel: Address
  readonly button: string
  readonly fields: WebhookFields
  readonly errors: FieldErrors
  /** Whether the form adds a webhook. Such a form also has the fields for the key and for the start in the feed. */
  readonly isNew: boolean
  readonly isFilterOpen?: boolean
  /** The fields as the form first showed them (`changesIn`); absent: the form adds a webhook. */
  readonly shown?: string
}

export function webhookForm({ to, cancel, button, fields, errors, isNew, isFilterOpen = false, shown }: WebhookForm): Markup {
  const open = (names: readonly string[]) => (names.some((name) => name in errors) ? markup(' open') : null)
  return html`<form class="form" method="post" action="${to.path}" novalidate>${shown === undefined ? null : html`<input type="hidden" name="shown" value="${shown}">`}
${field('url', 'The relay posts events here. It must not redirect.', errors, (more) => html`<input id="url" name="url" type="url" inputmode="url" value="${fields.url}" required spellcheck="false" autocomplete="off" placeholder="https://"${more}>`)}
${field('name', 'For you: what it is used for.', errors, (more) => html`<input id="name" name="name" value="${fields.name}" required maxlength="100" autocomplete="off"${more}>`)}
${isNew ? keyFields(fields, errors) : null}
<details class="plain"${isFilterOpen ? markup(' open') : open(EVENTS)}><summary>Only some events</summary>${eventFields(fields, errors)}</details>
<details class="plain"${open(SENDING)}><summary>Rate, retries, signature${isNew ? ', where to start' : ''}</summary>${sendingFields(fields, errors, isNew)}</details>
<p class="more"><button class="btn main" type="submit">${button}</button>${link(cancel, 'Cancel')}</p>
</form>`
}

function keyFields(fields: WebhookFields, errors: FieldErrors): Markup {
  return html`<fieldset><legend>Shared key</legend>
<div class="pick"><input type="radio" id="key-made" name="key" value="made"${fields.isKeyGiven ? null : CHECKED}><label for="key-made">Make one <small>32 random bytes, shown once on the next page</small></label></div>
<div class="pick"><input type="radio" id="key-given" name="key" value="given"${fields.isKeyGiven ? CHECKED : null}><label for="key-given">Use mine</label></div>
<div class="given">${field('sharedKey', 'At least 16 bytes. It is not shown again, here or anywhere.', errors, (more) => html`<input id="sharedKey" name="sharedKey" type="password" autocomplete="new-password" spellcheck="false"${more}>`)}</div>
</fieldset>`
}

function eventFields(fields: WebhookFields, errors: FieldErrors): Markup {
  const chosen = fields.status ?? []
  const statuses = [...new Set([...DOCUMENTED_STATUSES, ...chosen])]
  return html`<fieldset id="status"><legend>Status</legend>
<div class="pick"><input type="radio" id="statuses-all" name="statuses" value="all"${fields.status === null ? CHECKED : null}><label for="statuses-all">All, including statuses that the carrier adds later</label></div>
<div class="pick"><input type="radio" id="statuses-some" name="statuses" value="some"${fields.status === null ? null : CHECKED}><label for="statuses-some">Only those ticked here</label></div>
<div class="picks">${statuses.map(
    (status, at) =>
      html`<div class="pick"><input type="checkbox" id="status-${at}" name="status" value="${status}"${chosen.includes(status) ? CHECKED : null}><label for="status-${at}">${status}</label></div>`,
  )}</div><small class="dim">As soon as one is ticked, only those are sent.</small></fieldset>
${field('detailedStatus', 'With commas between; a value with a comma in quotes. Empty: all; []: none.', errors, (more) => html`<input id="detailedStatus" name="detailedStatus" value="${fields.detailedStatus}" autocomplete="off"${more}>`)}
${field('distributionType', 'With commas between, such as Mailbox, PickupPoint; a value with a comma in quotes. Empty: all; []: none.', errors, (more) => html`<input id="distributionType" name="distributionType" value="${fields.distributionType}" autocomplete="off"${more}>`)}
<div class="field"><label for="displayToConsumer">For consumers</label>${choice('displayToConsumer', fields.displayToConsumer, [
    ['', 'all events'],
    ['true', 'only those a consumer may see'],
    ['false', 'only those a consumer may not see'],
  ])}</div>
<div class="pick"><input type="checkbox" id="backfill" name="backfill" value="true"${fields.backfill ? CHECKED : null}><label for="backfill">Also what happened before the webhook began</label></div>`
}

function sendingFields(fields: WebhookFields, errors: FieldErrors, isNew: boolean): Markup {
  return html`${field('rate', 'Empty: no limit.', errors, (more) => html`<input id="rate" name="rate" value="${fields.rate}" inputmode="decimal" autocomplete="off"${more}>`)}
${field('concurrency', 'Empty: as delivery.perEndpoint says.', errors, (more) => html`<input id="concurrency" name="concurrency" value="${fields.concurrency}" inputmode="numeric" autocomplete="off"${more}>`)}
${field('schedule', 'Durations with commas between, such as 5s, 5m, 30m. Empty: as delivery.schedule says.', errors, (more) => html`<input id="schedule" name="schedule" value="${fields.schedule}" autocomplete="off"${more}>`)}
<div class="field"><label for="signature">Signature</label>${choice('signature', fields.signature, [
    ['carrier', 'as the carrier signs'],
    ['standard-webhooks', 'also as Standard Webhooks'],
  ])}</div>
<div class="field"><label for="refusals">An event that it refuses (4xx)</label>${choice('refusals', fields.refusals, [
    ['wait', 'waits and is tried again'],
    ['skip', 'is given up, and the next is sent'],
  ])}</div>
${isNew ? field('from', '“now”, or a sequence number of the feed: the webhook then gets all events from that one on.', errors, (more) => html`<input id="from" name="from" value="${fields.from}" autocomplete="off"${more}>`) : null}`
}

const CHECKED = markup(' checked')
const SELECTED = markup(' selected')

function choice(name: string, chosen: string, options: readonly (readonly [value: string, text: string])[]): Markup {
  return html`<select id="${name}" name="${name}">${options.map(([value, text]) => html`<option value="${value}"${value === chosen ? SELECTED : null}>${text}</option>`)}</select>`
}

function field(name: string, hint: string, errors: FieldErrors, input: (more: Markup) => Markup): Markup {
  const error = errors[name]
  const described = html` aria-describedby="${error === undefined ? '' : `${name}-error `}${name}-hint"`
  return html`<div class="field"><label for="${name}">${LABELS[name] ?? name}</label>${input(error === undefined ? described : html` aria-invalid="true"${described}`)}${
    error === undefined ? null : html`<span class="err" id="${name}-error">${error}</span>`
  }<small id="${name}-hint">${hint}</small></div>`
}
