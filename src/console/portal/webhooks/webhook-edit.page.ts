import type { EndpointState } from '../../../core/domain/delivery/endpoint-state.ts'
import type { FilterWarning, KeyedEndpoint } from '../../../core/flow/delivery/manage-endpoints.ts'
import { buttonLink, link } from '../addresses.ts'
import { html, type Markup } from '../html.ts'
import { renderPage } from '../layout.ts'
import type { Visit } from '../page-route.ts'
import { copyable, crumbs, headline, icon } from '../parts.ts'
import { fullTime } from '../times.ts'
import type { Conflict } from './webhook-changes.ts'
import { type FieldErrors, labelOf, mistakes, type WebhookFields, webhookForm } from './webhook-form.ts'

const isEmpty = (errors: FieldErrors) => Object.keys(errors).length === 0

/** Makes the page to add a webhook. `errors`: the mistakes in the form that was just sent; empty: no form was sent. */
export function newPage(visit: Visit, fields: WebhookFields, errors: FieldErrors): string {
  const { to, person } = visit
  const main = html`${crumbs([to`/webhooks`, 'Webhooks'])}
${headline({ title: 'Add webhook', lead: 'From now on it gets every new event, signed.' })}
${isEmpty(errors) ? null : mistakes(errors, 'Nothing was added.')}
${webhookForm({ to: to`/webhooks/new`, cancel: to`/webhooks`, button: 'Add webhook', fields, errors, isNew: true })}`
  return renderPage(visit, { title: titleOf(errors, 'Add webhook'), section: 'webhooks', person, main })
}

export interface EditSaid {
  /** The fields as the form first showed them, as JSON. */
  readonly shown: string
  readonly errors?: FieldErrors
  /** The values in the saved filters that may be mistyped. */
  readonly warnings?: readonly FilterWarning[]
  /** What somebody else has changed meanwhile. */
  readonly conflicts?: readonly Conflict[]
}

/** Makes the page to change a webhook. */
export function editPage(
  visit: Visit,
  { endpoint: { id, name } }: Pick<EndpointState, 'endpoint'>,
  fields: WebhookFields,
  { shown, errors = {}, warnings = [], conflicts = [] }: EditSaid,
): string {
  const { to, person } = visit
  const main = html`${crumbs([to`/webhooks`, 'Webhooks'], [to`/webhooks/${id}`, name])}
${headline({ title: `Edit ${name}`, lead: 'Events that wait are sent with the new settings.' })}
${isEmpty(errors) ? null : mistakes(errors, 'Nothing was changed.')}
${conflictNote(conflicts)}
${filterNote(html`The webhook is saved. ${link(to`/webhooks/${id}`, 'Show it')}, or correct its filters:`, warnings)}
${webhookForm({ to: to`/webhooks/${id}/edit`, cancel: to`/webhooks/${id}`, button: 'Save', fields, errors, isNew: false, isFilterOpen: warnings.length > 0, shown })}`
  return renderPage(visit, { title: titleOf(errors, `Edit ${name} · Webhooks`), section: 'webhooks', person, main })
}

function conflictNote(conflicts: readonly Conflict[]): Markup | null {
  if (conflicts.length === 0) return null
  const items = conflicts.map(
    ({ field, now, sent }) => html`<li>${labelOf(field)}: now <strong>${now}</strong>, you want <strong>${sent}</strong></li>`,
  )
  return html`<div class="note bad" role="alert"><strong>Nothing was changed.</strong> Somebody else has changed the same fields since you opened this page:<ul>${items}</ul>Save again to replace their values with yours.</div>`
}

function titleOf(errors: FieldErrors, title: string): string {
  const count = Object.keys(errors).length
  return count === 0 ? title : `${count} ${count === 1 ? 'mistake' : 'mistakes'} · ${title}`
}

/** Makes the page that is shown after a webhook was added. Only this page shows the webhook's key. */
export function addedPage(visit: Visit, { state: { endpoint }, sharedKey, warnings }: KeyedEndpoint): string {
  const { to, person } = visit
  const main = html`${crumbs([to`/webhooks`, 'Webhooks'])}
${headline({ title: html`${icon('ok', 'ok')}${endpoint.name} is added`, lead: 'Copy its key now. This page is the only place that shows it.' })}
${keyOnce(sharedKey)}
${filterNote(html`Its filters may be mistyped. Keep the key, then ${link(to`/webhooks/${endpoint.id}/edit`, 'edit them')}:`, warnings)}
<h2>Next</h2>
<ol><li>Put the key into the receiver at <code>${endpoint.url}</code>.</li>
<li>Send it a test: a signed push marked <code>relay-test: true</code>, which it should answer with 2xx. ${testBeside(visit, endpoint.id)}</li></ol>
${howToCheck}
<p>${buttonLink(to`/webhooks/${endpoint.id}`, `I have kept the key; show ${endpoint.name}`)}</p>`
  return renderPage(visit, { title: `${endpoint.name} added · Webhooks`, section: 'webhooks', person, main })
}

/** Makes the page that is shown after a key was replaced. Only this page shows the new key. */
export function keyPage(visit: Visit, { state: { endpoint, keys }, sharedKey }: KeyedEndpoint): string {
  const { to, person, nowMs } = visit
  const fromMs = keys?.next?.fromMs ?? null
  const when =
    fromMs === null
      ? html`It signs everything from now on. The receiver refuses events until it has the new key; they wait.`
      : html`Both keys sign until ${fullTime(fromMs, nowMs)}: the old one in the usual header, the new one in <code>x-service-hmac-sha256-next</code>. Put the new key into the receiver before that time.`
  const main = html`${crumbs([to`/webhooks`, 'Webhooks'], [to`/webhooks/${endpoint.id}`, endpoint.name])}
${headline({ title: html`${icon('ok', 'ok')}${endpoint.name} has a new key`, lead: 'Copy it now. This page is the only place that shows it.' })}
${keyOnce(sharedKey)}
<p>${when}</p>
${testBeside(visit, endpoint.id)}
<p>${buttonLink(to`/webhooks/${endpoint.id}`, `I have kept the key; show ${endpoint.name}`)}</p>`
  return renderPage(visit, { title: `New key of ${endpoint.name} · Webhooks`, section: 'webhooks', person, main })
}

/** Lists the filter values that no event has had so far. `head`: the sentence before the list. */
function filterNote(head: Markup, warnings: readonly FilterWarning[]): Markup | null {
  if (warnings.length === 0) return null
  const items = warnings.map(({ message }) => html`<li>${message.charAt(0).toUpperCase()}${message.slice(1)}</li>`)
  return html`<div class="note warn" role="status">${icon('warn', 'warn')} ${head}<ul>${items}</ul></div>`
}

/** Makes a button that shows the result of a test in a new tab, because this page is the only one that shows the key. */
function testBeside({ to }: Visit, id: string): Markup {
  return html`<form method="post" action="${to`/webhooks/${id}/test`.path}" target="_blank"><button class="btn" type="submit">Send test</button> <small>The result opens in a new tab. This page keeps the key.</small></form>`
}

function keyOnce(sharedKey: string | null): Markup {
  if (sharedKey === null) return html`<p>The key of this form cannot be shown again. If you have not kept it, replace it.</p>`
  return html`<h2 id="k">Shared key</h2>
<div class="secret">${copyable('key', sharedKey, 'the shared key')}</div>
<p class="dim">Lost it? You can replace it at any time without losing an event.</p>`
}

const howToCheck = html`<details class="plain"><summary>How a receiver checks the signature</summary>
<pre tabindex="0">const expected = createHmac('sha256', Buffer.from(process.env.ENDPOINT_KEY, 'utf8')).update(bodyAsReceived).digest()
const given = Buffer.from(request.headers['x-service-hmac-sha256'] ?? '', 'base64')
const isSigned = given.length === expected.length &amp;&amp; timingSafeEqual(given, expected)</pre></details>`
