import { ACTION_NAMES, type KeptAction, LISTED_LENGTH_MAX, type ListedTarget } from '../../../core/domain/admin/operator-action.ts'
import { AppError } from '../../../core/domain/errors.ts'
import type { UseCases } from '../../../core/http/use-cases.ts'
import { type OperationQueries, readTarget, readTimeCursor } from '../../audit/operations.routes.ts'
import { type Address, html, link, type Markup, type Part, withQuery } from '../html.ts'
import { getPage, type PageAnswer, type PageRoute, renderPage, type Visit } from '../layout.ts'
import { asOfLine, crumbs, headline, olderLink, table } from '../parts.ts'
import { fullTime, namesOfWebhooks, options, readTimes, type TimeFilter, timeFields, timeInTable, type WebhookName } from '../times.ts'

/** The chosen filters, as text. `id` is that of the thing whose kind is `about`; of a webhook it may be the name. */
interface AuditFilters extends TimeFilter {
  readonly by: string
  readonly action: string
  readonly about: string
  readonly id: string
}

interface AuditListing extends Awaited<ReturnType<OperationQueries['actions']>> {
  readonly filters: AuditFilters
  readonly isFirst: boolean
  /** What is wrong with the filters, as a sentence. */
  readonly mistake: string | null
}

const LIST_MAX = 100

/** The kinds of things that the filter offers. An endpoint is called a webhook in the portal. */
const ABOUT = [
  ['parcel', 'parcel'],
  ['endpoint', 'webhook'],
  ['delivery', 'delivery'],
  ['push', 'push'],
  ['job', 'job'],
] as const

/** Makes the page that lists the orders of operators. */
export function auditPages({ operations, manageEndpoints }: Pick<UseCases, 'operations' | 'manageEndpoints'>): readonly PageRoute[] {
  async function list(filters: AuditFilters, cursor: ReturnType<typeof readTimeCursor>, webhooks: readonly WebhookName[]) {
    const { from, to } = readTimes(filters)
    const asked = { by: named(filters.by), action: readAction(filters.action), target: targetOf(filters, webhooks), fromMs: from, toMs: to }
    return await operations.actions({ ...asked, cursor, limit: LIST_MAX })
  }

  async function show(visit: Visit): Promise<PageAnswer> {
    const { query } = visit
    const filters = {
      by: query('by').trim(),
      action: query('action'),
      about: query('about'),
      id: query('id').trim(),
      from: query('from'),
      to: query('to'),
    }
    const cursor = query('cursor') === '' ? null : readTimeCursor(query('cursor'))
    if (cursor === null && query('cursor') !== '') throw new AppError('not_found', 'The list has no such page.')
    const webhooks = await namesOfWebhooks(manageEndpoints)
    const common = { filters, isFirst: cursor === null }
    try {
      return { page: auditPage(visit, { ...common, ...(await list(filters, cursor, webhooks)), mistake: null }, webhooks) }
    } catch (error) {
      if (!(error instanceof AppError && error.code === 'bad_request')) throw error
      const nothing = { actions: [], existing: new Set<string>(), next: null }
      return { page: auditPage(visit, { ...common, ...nothing, mistake: error.message }, webhooks), status: 400 }
    }
  }

  return [getPage('/audit', show)]
}

function named(text: string): string | null {
  if (text.length > LISTED_LENGTH_MAX) throw new AppError('bad_request', `A name has at most ${LISTED_LENGTH_MAX} characters here.`)
  return text === '' ? null : text
}

function readAction(text: string): string | null {
  if (text !== '' && !ACTION_NAMES.some((name) => name === text)) throw new AppError('bad_request', 'Choose what was done from the list.')
  return text === '' ? null : text
}

function targetOf({ about, id }: AuditFilters, webhooks: readonly WebhookName[]): ListedTarget | null {
  if (id === '') return null
  const kind = about === '' ? 'parcel' : about
  const found = readTarget(kind, kind === 'endpoint' ? (webhooks.find(({ name }) => name === id)?.id ?? id) : id)
  if (found === null && kind === 'parcel') throw new AppError('bad_request', 'A parcel has 4 to 40 letters and digits.')
  const isNumber = found !== null && /^\d{1,15}$/.test(found.id)
  if (kind === 'endpoint' && !isNumber)
    throw new AppError('bad_request', 'No webhook has this name. Of a webhook that was removed, give the number.')
  if (found === null || (kind !== 'parcel' && !isNumber)) throw new AppError('bad_request', 'Choose a kind of thing, and give its number.')
  return found
}

function auditPage(visit: Visit, listing: AuditListing, webhooks: readonly WebhookName[]): string {
  const { to, nowMs } = visit
  const { filters, mistake, actions, next } = listing
  const main = html`${crumbs([to`/settings`, 'Settings'])}
${headline({ title: 'Audit', lead: 'Who changed what: each order that was carried out, the newest first.', asOf: asOfLine(nowMs, withQuery(to`/audit`, { ...filters })) })}
${filterForm(visit, filters)}
${mistake === null ? null : html`<div class="note bad" role="alert">${mistake} ${link(to`/audit`, 'Show all orders')}</div>`}
${actions.length > 0 ? rowsOf(visit, listing, webhooks) : mistake === null ? nothing(visit, listing) : null}
${olderLink(to`/audit`, next, { ...filters })}`
  return renderPage(visit, 'settings', 'Audit', main)
}

function filterForm({ to }: Visit, filters: AuditFilters): Markup {
  const actions = ACTION_NAMES.map((name) => [name, actionWords(name)] as const)
  return html`<form class="filters" role="search" action="${to`/audit`.path}" aria-label="Audit">
<div><label for="w">Who</label><input id="w" name="by" value="${filters.by}" autocomplete="off" spellcheck="false"></div>
<div><label for="a">What</label><select id="a" name="action">${options([['', 'any'], ...actions], filters.action)}</select></div>
<div><label for="k">About a</label><select id="k" name="about">${options(ABOUT, filters.about)}</select></div>
<div><label for="i">Its number or name</label><input id="i" name="id" value="${filters.id}" autocomplete="off" spellcheck="false"></div>
${timeFields(filters)}
<div><button class="btn" type="submit">Show</button></div>
</form>`
}

function nothing({ to }: Visit, { filters, next, isFirst }: AuditListing): Markup {
  if (next !== null) return html`<p>None on this page; there may be older ones.</p>`
  const isFiltered = !isFirst || Object.entries(filters).some(([name, chosen]) => name !== 'about' && chosen !== '')
  if (!isFiltered) return html`<div class="empty"><h2>Nobody has changed anything</h2></div>`
  return html`<div class="empty"><h2>Nothing found</h2><p>${link(to`/audit`, 'Show all orders')}</p></div>`
}

function rowsOf(visit: Visit, { actions, existing }: AuditListing, webhooks: readonly WebhookName[]): Markup {
  const { to, nowMs } = visit
  return table({
    label: 'Orders, newest first',
    kind: 'cards tight',
    columns: [{ time: 'When' }, 'Who', 'What', 'About', 'From'],
    rows: actions.map((action) => [
      timeInTable(action.atMs, nowMs),
      action.by.name.length > LISTED_LENGTH_MAX ? action.by.name : link(withQuery(to`/audit`, { by: action.by.name }), action.by.name),
      html`${actionWords(action.action)}${detailOf(action.detail, nowMs)}`,
      aboutOf(visit, action, { existing, webhooks }),
      action.by.address === null ? 'the machine' : html`<code>${action.by.address}</code>`,
    ]),
  })
}

/** The name of an action in the words of the portal. */
function actionWords(action: string): string {
  return action
    .replace(/^endpoint\./, 'webhook.')
    .replace('.', ' ')
    .replaceAll('_', ' ')
}

type Known = { readonly existing: ReadonlySet<string>; readonly webhooks: readonly WebhookName[] }

/** Names what an order was about. It is a link while there is a page about it. */
function aboutOf({ to }: Visit, { action, target, detail }: KeptAction, { existing, webhooks }: Known): Part {
  if (target === null) {
    const place = placeOf(to, action)
    return place === null ? null : link(...place)
  }
  const { kind, id } = target
  const word = ABOUT.find(([known]) => known === kind)?.[1] ?? kind
  if (kind === 'endpoint') {
    const name = webhooks.find((one) => one.id === id)?.name
    if (name !== undefined) return link(to`/webhooks/${id}`, `webhook ${name}`)
    return `webhook ${typeof detail.endpoint === 'string' ? detail.endpoint : id}`
  }
  if (kind === 'job') return link(to`/jobs`, `job ${id}`)
  if (kind === 'inbox') return link(withQuery(to`/inbox`, { state: id }), 'inbox')
  if (kind === 'store') return action === 'store.backup_started' ? link(to`/backups`, `backup ${id}`) : `store ${id}`
  const text = `${word} ${id}`
  if (!existing.has(`${kind}:${id}`)) return text
  const section = { parcel: to`/parcels/${id}`, delivery: to`/deliveries/${id}`, push: to`/inbox/${id}` }[kind]
  return section === undefined ? text : link(section, text)
}

/** The page that shows what an order has changed which names no thing. */
function placeOf(to: Visit['to'], action: string): readonly [Address, string] | null {
  if (action === 'store.rebuild_started') return [to`/jobs`, 'jobs']
  if (action === 'parcels.watched') return [to`/parcels`, 'parcels']
  if (action === 'config.reloaded') return [to`/settings`, 'settings']
  if (action === 'secrets.token_key_replaced' || action === 'secrets.resealed') return [withFragment(to`/settings`, 'keys'), 'keys']
  if (action.startsWith('retention.')) return [to`/retention`, 'retention']
  if (action.startsWith('operator.')) return [to`/events`, 'what happened']
  return null
}

function withFragment({ path }: Address, id: string): Address {
  return { path: `${path}#${id}` }
}

/** An instant, as JSON has it, is shown in the zone of the page. */
function detailOf(detail: Readonly<Record<string, unknown>>, nowMs: number): Part {
  const parts = Object.entries(detail).map(([name, value], at) => {
    const atMs = name === 'fromMs' ? value : typeof value === 'string' && INSTANT.test(value) ? Date.parse(value) : null
    const told = typeof atMs === 'number' ? fullTime(atMs, nowMs) : typeof value === 'string' ? value : JSON.stringify(value)
    return html`${at === 0 ? '' : '; '}${name === 'fromMs' ? 'from' : name}: ${told}`
  })
  return parts.length === 0 ? null : html` <small>${parts}</small>`
}

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z$/
