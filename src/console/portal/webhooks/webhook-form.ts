import {
  EVERY_SETTING,
  FILTERS,
  type Limit,
  ofEach,
  presentSettings,
  SETTINGS,
  type Setting,
  type SettingValue,
} from '../../../core/domain/delivery/endpoint-settings.ts'
import type { Endpoint } from '../../../core/domain/delivery/endpoint-state.ts'
import { AppError } from '../../../core/domain/errors.ts'
import { type Form, NO_FORM } from '../form.ts'
import { type Address, html, link, type Markup, markup } from '../html.ts'
import { options } from '../times.ts'

/** The fields of a form about a webhook, as text. The key is left out, so that no page sends a typed key back. */
export interface WebhookFields {
  readonly [setting: string]: string | undefined
  readonly url: string
  readonly name: string
  readonly from: string
  /** `made` or `given`. */
  readonly key: string
}

/** A sentence for each wrong field, by the field's id. */
export type FieldErrors = Readonly<Record<string, string>>

const NONE = '[]'

export const EMPTY_FIELDS: WebhookFields = fieldsOf(NO_FORM)

export function fieldsOf(form: Form): WebhookFields {
  const text = (name: string, without = '') => form.get(name).trim() || without
  const settings = ofEach(EVERY_SETTING, (row, name) => {
    if (row.kind === 'flag') return String(text(name) !== '')
    // A form that was sent has an empty value beside those ticked.
    if (row.kind === 'several') return listText(form.all(name).length === 0 ? row.preset : form.all(name).filter((one) => one !== ''))
    if (row.kind !== 'values' || row.isTicked !== true) return text(name, row.kind === 'choice' ? row.names[0] : '')
    return form.all(name).length > 0 || form.get('statuses') === 'some' ? listText(form.all(name)) : ''
  })
  return { ...settings, url: text('url'), name: text('name'), from: text('from', 'now'), key: text('key', 'made') }
}

/** Fills the fields with a webhook's current settings. */
export function fieldsOfEndpoint(endpoint: Endpoint): WebhookFields {
  const { name, url, filters, headers: _, ...settings } = presentSettings(endpoint)
  const values = new Map<string, SettingValue>(Object.entries({ ...filters, ...settings }))
  return { ...EMPTY_FIELDS, url, name, ...ofEach(EVERY_SETTING, (_, setting) => textOf(values.get(setting) ?? null)) }
}

function textOf(value: SettingValue): string {
  return typeof value === 'object' ? listText(value?.map(String) ?? null) : String(value)
}

/** Makes the API's request body. A mistyped number goes into the body as text, so that the API says what is wrong. */
export function bodyOf(fields: WebhookFields) {
  const valueIn = ({ kind }: Setting, name: string) => {
    const text = fields[name] ?? ''
    if (kind === 'values' || kind === 'several' || kind === 'waits') return readList(text)
    if (kind === 'choice') return text
    if (text === '') return null
    return kind === 'flag' || kind === 'either' ? text === 'true' : /^\d+(\.\d+)?$/.test(text) ? Number(text) : text
  }
  return { url: fields.url, name: fields.name, filters: ofEach(FILTERS, valueIn), ...ofEach(SETTINGS, valueIn) }
}

/** Writes a list of values with commas between. A value that would be read as another one is in quotes. Empty: all values. */
function listText(values: readonly string[] | null): string {
  if (values === null) return ''
  const isPlain = (value: string) => !/^"|,/.test(value) && value.trim() === value && value !== NONE
  return values.length === 0 ? NONE : values.map((value) => (isPlain(value) ? value : JSON.stringify(value))).join(', ')
}

export function readList(text: string): readonly string[] | null {
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

const LABELS: Readonly<Record<string, string>> = {
  url: 'URL',
  name: 'Name',
  sharedKey: 'Shared key',
  from: 'Start',
  ...ofEach(EVERY_SETTING, ({ label }) => label),
}

export function labelOf(field: string): string {
  return LABELS[field] ?? field
}

/** The settings of each part of the form that people can fold. A part with a mistake is unfolded. */
const { events, backfill, ...SENDING } = SETTINGS
const EVENTS = { ...FILTERS, events, backfill }

/** Shows how many fields are wrong, with a link to each. `nothing`: the sentence that says that nothing was done. */
export function mistakes(errors: FieldErrors, nothing: string): Markup {
  const names = Object.keys(errors)
  return html`<div class="note bad" role="alert"><strong>${nothing} Correct ${names.length === 1 ? 'one field' : `${names.length} fields`}:</strong><ul>${names.map(
    (name) => html`<li><a href="#${name}">${labelOf(name)}</a></li>`,
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
  const open = (part: object) => (Object.keys(errors).some((name) => name in part) ? markup(' open') : null)
  return html`<form class="form" method="post" action="${to.path}" novalidate>${shown === undefined ? null : html`<input type="hidden" name="shown" value="${shown}">`}
${field('url', 'The relay posts events here. It must not redirect.', errors, (more) => html`<input id="url" name="url" type="url" inputmode="url" value="${fields.url}" required spellcheck="false" autocomplete="off" placeholder="https://"${more}>`)}
${field('name', 'For you: what it is used for.', errors, (more) => html`<input id="name" name="name" value="${fields.name}" required maxlength="100" autocomplete="off"${more}>`)}
${isNew ? keyFields(fields, errors) : null}
<details class="plain"${isFilterOpen ? markup(' open') : open(EVENTS)}><summary>Only some events</summary>${inputsOf(EVENTS, fields, errors)}</details>
<details class="plain"${open(SENDING)}><summary>Rate, retries, signature${isNew ? ', where to start' : ''}</summary>${inputsOf(SENDING, fields, errors)}
${isNew ? textField('from', '“now”, or a sequence number of the feed: the webhook then gets all events from that one on.', fields, errors) : null}</details>
<p class="more"><button class="btn main" type="submit">${button}</button>${link(cancel, 'Cancel')}</p>
</form>`
}

function keyFields(fields: WebhookFields, errors: FieldErrors): Markup {
  return html`<fieldset><legend>Shared key</legend>
<div class="pick"><input type="radio" id="key-made" name="key" value="made"${fields.key === 'given' ? null : CHECKED}><label for="key-made">Make one <small>32 random bytes, shown once on the next page</small></label></div>
<div class="pick"><input type="radio" id="key-given" name="key" value="given"${fields.key === 'given' ? CHECKED : null}><label for="key-given">Use mine</label></div>
<div class="given">${field('sharedKey', 'At least 16 bytes. It is not shown again, here or anywhere.', errors, (more) => html`<input id="sharedKey" name="sharedKey" type="password" autocomplete="new-password" spellcheck="false"${more}>`)}</div>
</fieldset>`
}

function inputsOf(part: typeof EVENTS | typeof SENDING, fields: WebhookFields, errors: FieldErrors): Markup {
  const inputs = Object.values(ofEach(part, (row, name) => inputOf(row, name, fields, errors)))
  return html`${inputs.map((input, at) => [at === 0 ? null : '\n', input])}`
}

function inputOf(row: Setting, name: string, fields: WebhookFields, errors: FieldErrors): Markup {
  const text = fields[name] ?? ''
  switch (row.kind) {
    case 'flag':
      return html`<div class="pick"><input type="checkbox" id="${name}" name="${name}" value="true"${text === 'true' ? CHECKED : null}><label for="${name}">${row.tick}</label></div>`
    case 'choice':
    case 'either': {
      const choices = row.names.map((value, at) => [value, row.words[at] ?? value] as const)
      return html`<div class="field"><label for="${name}">${row.asked ?? row.label}</label><select id="${name}" name="${name}">${options(choices, text)}</select></div>`
    }
    case 'several': {
      const chosen = readList(text) ?? []
      const error = errors[name]
      return html`<fieldset id="${name}"><legend>${row.label}</legend><input type="hidden" name="${name}" value="">
${row.names.map(
  (value, at) =>
    html`<div class="pick"><input type="checkbox" id="${name}-${at}" name="${name}" value="${value}"${chosen.includes(value) ? CHECKED : null}><label for="${name}-${at}">${row.words[at]} <small>${value}</small></label></div>`,
)}${error === undefined ? null : html`<span class="err" id="${name}-error">${error}</span>`}</fieldset>`
    }
    case 'amount':
    case 'count':
      return textField(name, unsetHint(row), fields, errors, markup(` inputmode="${row.kind === 'amount' ? 'decimal' : 'numeric'}"`))
    case 'waits':
      return textField(name, `Durations with commas between, such as 5s, 5m, 30m. ${unsetHint(row)}`, fields, errors)
    case 'values':
      if (row.isTicked === true) return statusBoxes(row.known, readList(text))
      return textField(name, `With commas between${row.such ?? ''}; a value with a comma in quotes. Empty: all; []: none.`, fields, errors)
  }
}

function unsetHint(row: Limit): string {
  return `Empty: ${unsetWords(row)}.`
}

/** Says what applies without a limit. */
export function unsetWords({ unset }: Limit): string {
  return unset.includes('.') ? `as ${unset} says` : unset
}

/** `chosen` null: all statuses. */
function statusBoxes(known: readonly string[], chosen: readonly string[] | null): Markup {
  const statuses = [...new Set([...known, ...(chosen ?? [])])]
  return html`<fieldset id="status"><legend>Status</legend>
<div class="pick"><input type="radio" id="statuses-all" name="statuses" value="all"${chosen === null ? CHECKED : null}><label for="statuses-all">All, including statuses that the carrier adds later</label></div>
<div class="pick"><input type="radio" id="statuses-some" name="statuses" value="some"${chosen === null ? null : CHECKED}><label for="statuses-some">Only those ticked here</label></div>
<div class="picks">${statuses.map(
    (status, at) =>
      html`<div class="pick"><input type="checkbox" id="status-${at}" name="status" value="${status}"${chosen?.includes(status) === true ? CHECKED : null}><label for="status-${at}">${status}</label></div>`,
  )}</div><small class="dim">As soon as one is ticked, only those are sent.</small></fieldset>`
}

const CHECKED = markup(' checked')

function textField(name: string, hint: string, fields: WebhookFields, errors: FieldErrors, mode: Markup | null = null): Markup {
  return field(
    name,
    hint,
    errors,
    (more) => html`<input id="${name}" name="${name}" value="${fields[name]}"${mode} autocomplete="off"${more}>`,
  )
}

function field(name: string, hint: string, errors: FieldErrors, input: (more: Markup) => Markup): Markup {
  const error = errors[name]
  const described = html` aria-describedby="${error === undefined ? '' : `${name}-error `}${name}-hint"`
  return html`<div class="field"><label for="${name}">${labelOf(name)}</label>${input(error === undefined ? described : html` aria-invalid="true"${described}`)}${
    error === undefined ? null : html`<span class="err" id="${name}-error">${error}</span>`
  }<small id="${name}-hint">${hint}</small></div>`
}
