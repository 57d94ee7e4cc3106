import { type FormerOrder, readShownTest } from '../../../core/domain/admin/operator-action.ts'
import { seriesOf, spanStart } from '../../../core/domain/admin/tally.ts'
import { EVERY_SETTING } from '../../../core/domain/delivery/endpoint-settings.ts'
import { CONDITIONS, type Endpoint, type EndpointState } from '../../../core/domain/delivery/endpoint-state.ts'
import { AppError } from '../../../core/domain/errors.ts'
import type { FilterWarning, KeyedEndpoint, ManageEndpoints } from '../../../core/flow/delivery/manage-endpoints.ts'
import type { UseCases } from '../../../core/http/use-cases.ts'
import { mistakeIn } from '../form.ts'
import { buttonLink, html, link, type Markup } from '../html.ts'
import { getPage, type PageAnswer, type PageRoute, postForm, renderPage, type Visit } from '../layout.ts'
import { copyable, crumbs, headline, icon } from '../parts.ts'
import { fullTime } from '../times.ts'
import { stampOfKeys, type WebhookSaid, webhookListPage, webhookPage } from './webhook.page.ts'
import {
  bodyOf,
  EMPTY_FIELDS,
  type FieldErrors,
  fieldErrors,
  fieldsOf,
  fieldsOfEndpoint,
  labelOf,
  mistakes,
  readList,
  startOf,
  type WebhookFields,
  webhookForm,
} from './webhook-form.ts'

const LIST_MAX = 100
const HOUR_MS = 3_600_000

/** Makes the pages about webhooks: the list, and pages to look at, add, change, test, disable and remove a webhook. */
export function webhookPages({ manageEndpoints, operations }: Pick<UseCases, 'operations' | 'manageEndpoints'>): readonly PageRoute[] {
  return [
    getPage('/webhooks', list),
    ...webhookEditPages(manageEndpoints),
    getPage('/webhooks/:id', (visit) => show(visit)),
    postForm(
      '/webhooks/:id/test',
      async (visit) => show(visit, { kind: 'tested', result: await manageEndpoints.test(visit.param('id'), visit.by) }),
      {
        again: async (visit, { shown }) => {
          const result = readShownTest(shown)
          return await show(visit, result === null ? null : { kind: 'tested', result })
        },
      },
    ),
    postForm(
      '/webhooks/:id/retry',
      after((id, by) => manageEndpoints.retry(id, by)),
    ),
    postForm(
      '/webhooks/:id/enable',
      after((id, by) => manageEndpoints.change(id, { enabled: true }, by)),
    ),
    postForm(
      '/webhooks/:id/disable',
      after((id, by) => manageEndpoints.change(id, { enabled: false }, by)),
    ),
    postForm('/webhooks/:id/remove', remove, { again: async ({ to }) => ({ goTo: to`/webhooks` }) }),
  ]

  async function list(visit: Visit): Promise<PageAnswer> {
    const name = visit.query('name')
    const named =
      name === '' ? undefined : (await manageEndpoints.states()).find(({ endpoint }) => [endpoint.name, endpoint.id].includes(name))
    if (named !== undefined) return { goTo: visit.to`/webhooks/${named.endpoint.id}` }
    const skip = visit.query('skip')
    if (!/^\d{0,9}$/.test(skip)) throw new AppError('not_found', 'The list has no such page.')
    const condition = CONDITIONS.find((one) => one === visit.query('state')) ?? null
    const question = { text: name === '' ? visit.query('query').trim() : name, condition, skip: Number(skip), limit: LIST_MAX }
    return { page: webhookListPage(visit, { ...(await manageEndpoints.search(question)), search: question, ...question }) }
  }

  async function show(visit: Visit, said: WebhookSaid = null): Promise<PageAnswer> {
    const view = await manageEndpoints.find(visit.param('id'))
    const last = spanStart('hour', visit.nowMs)
    const fromMs = last - 23 * HOUR_MS
    const stored = await operations.tallies({ kind: `endpoint:${view.endpoint.id}`, span: 'hour', fromMs, toMs: visit.nowMs + 1 })
    return { page: webhookPage(visit, { ...view, attempts: seriesOf(stored, { span: 'hour', last, length: 24 }) }, said) }
  }

  function after(act: (id: string, by: Visit['by']) => Promise<unknown>): PageRoute['answer'] {
    return async ({ param, to, by }) => {
      await act(param('id'), by)
      return { goTo: to`/webhooks/${param('id')}` }
    }
  }

  async function remove(visit: Visit): Promise<PageAnswer> {
    const id = visit.param('id')
    const { name } = (await manageEndpoints.find(id)).endpoint
    if (withSingleSpaces(visit.form.get('confirm')) !== withSingleSpaces(name))
      throw mistakeIn('confirm', `Type the name ${name} to confirm.`)
    await manageEndpoints.remove(id, visit.by)
    return { goTo: visit.to`/webhooks` }
  }
}

/** Browsers show any white space as one space, so people type one. */
function withSingleSpaces(text: string): string {
  return text.trim().replace(/\s+/g, ' ')
}

/** Makes the pages with forms about a webhook's settings and its key. */
function webhookEditPages(manageEndpoints: ManageEndpoints): readonly PageRoute[] {
  return [
    getPage('/webhooks/new', async (visit) => ({ page: newPage(visit, EMPTY_FIELDS, {}) })),
    postForm('/webhooks/new', add, { again: showAdded }),
    getPage('/webhooks/:id/edit', showForm),
    postForm('/webhooks/:id/edit', change),
    postForm('/webhooks/:id/key', replaceKey, { again: showKey }),
    postForm('/webhooks/:id/new-key-now', endOldKey),
  ]

  async function add(visit: Visit): Promise<PageAnswer> {
    const fields = fieldsOf(visit.form)
    const sharedKey = fields.key === 'given' ? visit.form.get('sharedKey') : null
    return await orSayWhatIsWrong(
      async () => ({
        page: addedPage(visit, await manageEndpoints.add({ ...bodyOf(fields), sharedKey, from: startOf(fields) }, visit.by)),
        status: 201,
      }),
      async (errors) => newPage(visit, fields, errors),
    )
  }

  async function showAdded(visit: Visit, { action, shown }: FormerOrder): Promise<PageAnswer> {
    return { page: addedPage(visit, await manageEndpoints.keyed(action.target?.id ?? '', shown)), status: 201 }
  }

  async function showKey(visit: Visit, { shown }: FormerOrder): Promise<PageAnswer> {
    return { page: keyPage(visit, await manageEndpoints.keyed(visit.param('id'), shown)) }
  }

  async function showForm(visit: Visit): Promise<PageAnswer> {
    const state = await manageEndpoints.find(visit.param('id'))
    const fields = fieldsOfEndpoint(state.endpoint)
    return { page: editPage(visit, state, fields, { shown: JSON.stringify(fields) }) }
  }

  /** Changes only what the form has changed, so that it takes back nothing that somebody else has changed meanwhile. */
  async function change(visit: Visit): Promise<PageAnswer> {
    const id = visit.param('id')
    const before = await manageEndpoints.find(id)
    const shown = visit.form.get('shown')
    const now = fieldsOfEndpoint(before.endpoint)
    const { body, conflicts, fields } = changesIn(fieldsOf(visit.form), shown, now, before.endpoint)
    if (conflicts.length > 0) return { page: editPage(visit, before, fields, { shown: JSON.stringify(now), conflicts }), status: 409 }
    if (body === null) return { goTo: visit.to`/webhooks/${id}` }
    return await orSayWhatIsWrong(
      async () => {
        const { state, warnings } = await manageEndpoints.change(id, body, visit.by)
        if (warnings.length === 0) return { goTo: visit.to`/webhooks/${id}` }
        return { page: editPage(visit, state, fields, { shown: JSON.stringify(fieldsOfEndpoint(state.endpoint)), warnings }) }
      },
      async (errors) => editPage(visit, before, fields, { shown: shown || JSON.stringify(now), errors }),
    )
  }

  async function replaceKey(visit: Visit): Promise<PageAnswer> {
    await refuseStale(visit)
    const given = visit.form.get('sharedKey')
    const atOnce = visit.form.get('at') === 'now' ? { at: 'now' } : {}
    const body = { sharedKey: given === '' ? null : given, ...atOnce }
    return { page: keyPage(visit, await manageEndpoints.rotate(visit.param('id'), body, visit.by)) }
  }

  async function endOldKey(visit: Visit): Promise<PageAnswer> {
    await refuseStale(visit)
    await manageEndpoints.rotate(visit.param('id'), { at: 'now' }, visit.by)
    return { goTo: visit.to`/webhooks/${visit.param('id')}` }
  }

  /**
   * Refuses a form that is sent twice, for example when somebody reloads the page with the new key. The second form would replace that key.
   */
  async function refuseStale({ param, form }: Visit): Promise<void> {
    if (form.get('keys') === stampOfKeys(await manageEndpoints.find(param('id')))) return
    throw new AppError(
      'stale_form',
      'The key of this endpoint was replaced after the page was loaded, so nothing was done. Reload the page first.',
    )
  }
}

/** Runs the work of a form. If a field is wrong, answers with the form and the mistakes. */
async function orSayWhatIsWrong(work: () => Promise<PageAnswer>, formAgain: (errors: FieldErrors) => Promise<string>): Promise<PageAnswer> {
  try {
    return await work()
  } catch (error) {
    const errors = fieldErrors(error)
    if (errors === null) throw error
    return { page: await formAgain(errors), status: 400 }
  }
}

const isEmpty = (errors: FieldErrors) => Object.keys(errors).length === 0

/** Makes the page to add a webhook. `errors`: the mistakes in the form that was just sent; empty: no form was sent. */
function newPage(visit: Visit, fields: WebhookFields, errors: FieldErrors): string {
  const { to } = visit
  const main = html`${crumbs([to`/webhooks`, 'Webhooks'])}
${headline({ title: 'Add webhook', lead: 'From now on it gets every new event, signed.' })}
${isEmpty(errors) ? null : mistakes(errors, 'Nothing was added.')}
${webhookForm({ to: to`/webhooks/new`, cancel: to`/webhooks`, button: 'Add webhook', fields, errors, isNew: true })}`
  return renderPage(visit, 'webhooks', titleOf(errors, 'Add webhook'), main)
}

interface EditSaid {
  /** The fields as the form first showed them, as JSON. */
  readonly shown: string
  readonly errors?: FieldErrors
  /** The values in the saved filters that may be mistyped. */
  readonly warnings?: readonly FilterWarning[]
  /** What somebody else has changed meanwhile. */
  readonly conflicts?: readonly Conflict[]
}

/** Makes the page to change a webhook. */
function editPage(
  visit: Visit,
  { endpoint: { id, name } }: Pick<EndpointState, 'endpoint'>,
  fields: WebhookFields,
  { shown, errors = {}, warnings = [], conflicts = [] }: EditSaid,
): string {
  const { to } = visit
  const main = html`${crumbs([to`/webhooks`, 'Webhooks'], [to`/webhooks/${id}`, name])}
${headline({ title: `Edit ${name}`, lead: 'Events that wait are sent with the new settings.' })}
${isEmpty(errors) ? null : mistakes(errors, 'Nothing was changed.')}
${conflictNote(conflicts)}
${filterNote(html`The webhook is saved. ${link(to`/webhooks/${id}`, 'Show it')}, or correct its filters:`, warnings)}
${webhookForm({ to: to`/webhooks/${id}/edit`, cancel: to`/webhooks/${id}`, button: 'Save', fields, errors, isNew: false, isFilterOpen: warnings.length > 0, shown })}`
  return renderPage(visit, 'webhooks', titleOf(errors, `Edit ${name} · Webhooks`), main)
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
function addedPage(visit: Visit, { state: { endpoint }, sharedKey, warnings }: KeyedEndpoint): string {
  const { to } = visit
  const main = html`${crumbs([to`/webhooks`, 'Webhooks'])}
${headline({ title: html`${icon('ok', 'ok')}${endpoint.name} is added`, lead: 'Copy its key now. This page is the only place that shows it.' })}
${keyOnce(sharedKey)}
${filterNote(html`Its filters may be mistyped. Keep the key, then ${link(to`/webhooks/${endpoint.id}/edit`, 'edit them')}:`, warnings)}
<h2>Next</h2>
<ol><li>Put the key into the receiver at <code>${endpoint.url}</code>.</li>
<li>Send it a test: a signed push marked <code>relay-test: true</code>, which it should answer with 2xx. ${testBeside(visit, endpoint.id)}</li></ol>
${howToCheck}
<p>${buttonLink(to`/webhooks/${endpoint.id}`, `I have kept the key; show ${endpoint.name}`)}</p>`
  return renderPage(visit, 'webhooks', `${endpoint.name} added · Webhooks`, main)
}

/** Makes the page that is shown after a key was replaced. Only this page shows the new key. */
function keyPage(visit: Visit, { state: { endpoint, keys }, sharedKey }: KeyedEndpoint): string {
  const { to, nowMs } = visit
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
  return renderPage(visit, 'webhooks', `New key of ${endpoint.name} · Webhooks`, main)
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

/** What a form changes, compared with the webhook as the form showed it. */
interface WebhookChanges {
  /** The API's request body, with the changed members only. Null: nothing was changed. */
  readonly body: object | null
  /** The fields that somebody else has changed since the form was shown, and this form too, to another value. */
  readonly conflicts: readonly Conflict[]
  /** The fields as sent. Those that the form does not change are as the webhook has them now. */
  readonly fields: WebhookFields
}

interface Conflict {
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
