import { html, link, type Markup, type Part, withQuery } from '../../console/portal/html.ts'
import { type PageRoute, renderPage, type Visit } from '../../console/portal/layout.ts'
import type { ParcelSection } from '../../console/portal/parcels/parcel.pages.ts'
import { mainIdentifier } from '../../console/portal/parcels/parcel-list.page.ts'
import { asOfLine, crumbs, headline, table } from '../../console/portal/parts.ts'
import { timeInTable } from '../../console/portal/times.ts'
import { counted, countText, formatDuration } from '../../core/domain/amounts.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
import type { ShownRule, WatchdogsView } from './manage-watchdogs.ts'
import type { WatchdogRule } from './watchdog.rules.ts'
import type { ListedBreach } from './watchdogs.rows.ts'

const LIST_MAX = 100

type Parts = Pick<UseCases, 'manageWatchdogs'>

/** Makes the section "Watchdogs" of a parcel's page, if a rule has found it stalled. */
export function watchdogSections({ manageWatchdogs }: Parts): readonly ParcelSection[] {
  return [
    {
      id: 'watchdogs',
      title: 'Watchdogs',
      position: -10,
      async show(visit, { identifiers }) {
        const query = { rule: null, isOpen: false, cursor: null, limit: LIST_MAX }
        const { breaches } = await manageWatchdogs.list({ ...query, parcel: mainIdentifier(identifiers) })
        return breaches.length === 0 ? null : breachTable(visit, breaches, 'of the parcel')
      },
    },
  ]
}

/** Makes the page that shows the rules and the parcels that they find stalled. */
export function watchdogPages({ manageWatchdogs }: Parts): readonly PageRoute[] {
  return [
    {
      method: 'get',
      path: '/watchdogs',
      scope: 'admin',
      async answer(visit) {
        const [rule, all, cursor] = [visit.query('rule') || null, visit.query('all') === 'true', visit.query('cursor') || null]
        const asked = { rule, isOpen: !all, parcel: null, cursor, limit: LIST_MAX }
        const [view, listed] = await Promise.all([manageWatchdogs.view(), manageWatchdogs.list(asked)])
        return { page: watchdogsPage(visit, view, { ...listed, rule, all }) }
      },
    },
  ]
}

interface Listing {
  readonly breaches: readonly ListedBreach[]
  readonly next: string | null
  readonly rule: string | null
  readonly all: boolean
}

function watchdogsPage(visit: Visit, view: WatchdogsView, { breaches, next, rule, all }: Listing): string {
  const { to, nowMs, person } = visit
  const here = to`/watchdogs`
  const kept = { ...(rule === null ? {} : { rule }), ...(all ? { all: 'true' } : {}) }
  const main = html`${crumbs([to`/parcels`, 'Parcels'])}
${headline({ title: 'Watchdogs', lead: leadOf(view), asOf: asOfLine(nowMs, here) })}
${view.rules.length === 0 ? html`<div class="empty"><h2>No rule watches over parcels</h2><p>Add some under <code>watchdogs</code> in the config: ${link(to`/docs/insight`, 'how')}.</p></div>` : rulesTable(visit, view.rules)}
<h2>${all ? 'All that was told' : 'Stalled now'}${rule === null ? '' : ` by ${rule}`}</h2>
<p>${all ? link(withQuery(here, rule === null ? {} : { rule }), 'Only what lasts') : link(withQuery(here, { ...kept, all: 'true' }), 'Also what is over')}${rule === null ? null : html` · ${link(here, 'All rules')}`}</p>
${breaches.length === 0 ? html`<p class="dim">None.</p>` : breachTable(visit, breaches, 'told last first')}
${next === null ? null : html`<p class="more"><span>Newest first</span>${link(withQuery(here, { ...kept, cursor: next }), 'Older')}</p>`}`
  return renderPage(visit, { title: 'Watchdogs', section: 'parcels', person, main })
}

function leadOf({ rules, waiting, heldSinceMs }: WatchdogsView): Part {
  const open = rules.reduce((sum, rule) => sum + rule.open, 0)
  const wait = waiting === 0 ? '' : ` ${counted(waiting, 'parcel waits', 'parcels wait')} for an answer of the carrier.`
  const held = heldSinceMs === null ? null : html` <span class="warn-text">Nothing is told: neither pushes nor polls tell anything.</span>`
  return html`${open === 0 ? 'No parcel is stalled.' : `${counted(open, 'parcel is', 'parcels are')} stalled.`}${wait}${held}`
}

/** Says what a rule watches, such as `Ingested, and nothing for 48h`. */
export function describeRule({ when, notWithinMs, notBy, until }: WatchdogRule): string {
  const lists = [when.status, when.detailedStatus, when.distributionType, when.label]
  const begins = lists.flatMap((list) => (list === null ? [] : list.join(' or '))).join(', ')
  const ends = until === null ? 'nothing' : `no ${until.join(' or ')}`
  if (notWithinMs !== null) return `${begins}, and ${ends} within ${formatDuration(notWithinMs)}`
  if (notBy !== null) return `${begins}, and ${ends} by ${notBy}`
  return `${begins}, at once`
}

function rulesTable({ to, nowMs }: Visit, rules: readonly ShownRule[]): Markup {
  return table({
    label: 'Rules',
    columns: [
      { title: 'Rule' },
      { title: 'Stalled is a parcel with' },
      { title: 'In effect since', isTime: true },
      { title: 'Stalled', isNumber: true },
    ],
    rows: rules.map(({ rule, loadedAtMs, open }) => [
      link(withQuery(to`/watchdogs`, { rule: rule.name }), rule.name),
      describeRule(rule),
      loadedAtMs === null ? 'not yet' : timeInTable(loadedAtMs, nowMs),
      countText(open),
    ]),
  })
}

function breachTable({ to, nowMs }: Visit, breaches: readonly ListedBreach[], label: string): Markup {
  return table({
    label: `Breaches, ${label}`,
    columns: [
      { title: 'Parcel' },
      { title: 'Rule' },
      { title: 'Stalled since', isTime: true },
      { title: 'Told', isTime: true },
      { title: 'Carrier asked' },
      { title: 'Over', isTime: true },
    ],
    rows: breaches.map(({ identifiers: [first = ''], rule, sinceMs, toldAtMs, checked, endedAtMs }) => [
      first === '' ? '' : link(to`/parcels/${first}`, first),
      rule,
      timeInTable(sinceMs, nowMs),
      timeInTable(toldAtMs, nowMs),
      checked ? 'yes' : 'could not be',
      endedAtMs === null ? 'lasts' : timeInTable(endedAtMs, nowMs),
    ]),
  })
}
