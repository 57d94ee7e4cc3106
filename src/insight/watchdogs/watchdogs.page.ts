import { z } from 'zod'
import { mistakeIn } from '../../console/portal/form.ts'
import { html, link, type Markup, markup, type Part, withQuery } from '../../console/portal/html.ts'
import { getPage, type PageAnswer, type PageRoute, postForm, renderPage, type Visit } from '../../console/portal/layout.ts'
import type { ParcelSection } from '../../console/portal/parcels/parcel.pages.ts'
import { mainIdentifier } from '../../console/portal/parcels/parcel-list.page.ts'
import { asOfLine, crumbs, headline, table } from '../../console/portal/parts.ts'
import { timeInTable } from '../../console/portal/times.ts'
import { counted, countText, parseDuration } from '../../core/domain/amounts.ts'
import { AppError } from '../../core/domain/errors.ts'
import { readReference } from '../../core/domain/history/order-context.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
import type { ExplainedBreach, ShownRule, TriedBreach, WatchdogsView } from './manage-watchdogs.ts'
import { describeRule, TRIED_SINCE_MS_MAX } from './watchdog.rules.ts'
import { countsByRule, readRules } from './written-rules.ts'

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
        const query = { rule: null, isOpen: false, reference: null, cursor: null, limit: LIST_MAX }
        const { breaches } = await manageWatchdogs.list({ ...query, parcel: mainIdentifier(identifiers) })
        return breaches.length === 0 ? null : breachTable(visit, breaches, { label: 'of the parcel', hasOrders: false })
      },
    },
  ]
}

/** Makes the page that shows the rules and the parcels that they find stalled, and tries rules that its form sends. */
export function watchdogPages({ manageWatchdogs }: Parts): readonly PageRoute[] {
  return [
    getPage('/watchdogs', (visit) => show(visit, UNTRIED)),
    postForm('/watchdogs/try', async (visit) => {
      const [rules, since] = [visit.form.get('rules'), visit.form.get('since').trim()]
      const after = /^\d{1,15}$/.test(visit.form.get('after')) ? Number(visit.form.get('after')) : null
      return await show(visit, { rules, since, found: await tryRules(manageWatchdogs, { rules, since, after }) })
    }),
  ]

  async function show(visit: Visit, tried: Tried): Promise<PageAnswer> {
    const [rule, all, cursor] = [visit.query('rule') || null, visit.query('all') === 'true', visit.query('cursor') || null]
    const reference = readReference(visit.query('reference'))
    const asked = { rule, isOpen: !all, parcel: null, reference, cursor, limit: LIST_MAX }
    const [view, listed] = await Promise.all([manageWatchdogs.view(), manageWatchdogs.list(asked)])
    return { page: watchdogsPage(visit, view, { ...listed, rule, reference, all }, tried) }
  }
}

/** What the form holds, and what its rules would have said; null: nobody has sent it. */
interface Tried {
  readonly rules: string
  readonly since: string
  readonly found: Found | null
}

interface Found {
  readonly breaches: readonly TriedBreach[]
  readonly parcels: number
  /** The parcel after which to look on; null: all were looked at. */
  readonly next: number | null
  /** How often each rule found one. */
  readonly counts: readonly string[]
}

const UNTRIED: Tried = { rules: '- { name: slow, when: { status: [Ingested] }, notWithin: 12h }', since: '30d', found: null }
/** A form tries rules on some parcels at once so often. */
const TRIES_MAX = 20

/** Throws `bad_request`, which says what is wrong in which field, and in which line of the rules. */
async function tryRules(
  { tryRules: tryOnSome }: Parts['manageWatchdogs'],
  { rules: text, since, after }: Pick<Tried, 'rules' | 'since'> & { readonly after: number | null },
): Promise<Found> {
  const written = readRules(text)
  if (typeof written === 'string') throw mistakeIn('rules', written)
  const forMs = parseDuration(since)
  if (forMs === null || forMs > TRIED_SINCE_MS_MAX) throw mistakeIn('since', 'Write a duration such as 30d, at most 366d.')
  let found: Omit<Found, 'counts'> = { breaches: [], parcels: 0, next: after }
  for (let tries = 0; tries < TRIES_MAX && (tries === 0 || found.next !== null); tries++) {
    const some = await tryOnSome(written.rules, forMs, found.next).catch((error: unknown) => {
      throw error instanceof AppError && error.code === 'bad_request' ? mistakeIn('rules', withLines(error, written.lineOf)) : error
    })
    found = { breaches: [...found.breaches, ...some.breaches], parcels: found.parcels + some.parcels, next: some.next }
  }
  return { ...found, counts: countsByRule(written.rules, found.breaches) }
}

const mistakes = z.array(z.object({ pointer: z.string(), detail: z.string() }))

/** Says in which line each mistake in the rules is, instead of in which rule of the list. */
function withLines({ facts, message }: AppError, lineOf: (pointer: string) => number): string {
  const { data } = mistakes.safeParse(facts?.errors)
  if (data === undefined) return message
  return data.map(({ pointer, detail }) => `Line ${lineOf(pointer)}: ${detail.replaceAll(/(?<=^|")\d+\./g, '')}`).join(' ')
}

interface Listing {
  readonly breaches: readonly ExplainedBreach[]
  readonly next: string | null
  readonly rule: string | null
  readonly reference: string | null
  readonly all: boolean
}

function watchdogsPage(visit: Visit, view: WatchdogsView, { breaches, next, rule, reference, all }: Listing, tried: Tried): string {
  const { to, nowMs } = visit
  const here = to`/watchdogs`
  const of = { ...(rule === null ? {} : { rule }), ...(reference === null ? {} : { reference }) }
  const kept = { ...of, ...(all ? { all: 'true' } : {}) }
  const isAll = rule === null && reference === null
  const main = html`${crumbs([to`/parcels`, 'Parcels'])}
${headline({ title: 'Watchdogs', lead: leadOf(view), asOf: asOfLine(nowMs, here) })}
${tried.found === null ? null : tryForm(visit, tried)}
${view.rules.length === 0 ? html`<div class="empty"><h2>No rule watches over parcels</h2><p>Add some under <code>watchdogs</code> in the config: ${link(to`/docs/insight`, 'how')}.</p></div>` : rulesTable(visit, view.rules)}
<h2>${all ? 'All that was told' : 'Stalled now'}${rule === null ? '' : ` by ${rule}`}${reference === null ? '' : ` of the order ${reference}`}</h2>
<p>${all ? link(withQuery(here, of), 'Only what lasts') : link(withQuery(here, { ...kept, all: 'true' }), 'Also what is over')}${isAll ? null : html` · ${link(here, reference === null ? 'All rules' : 'All parcels')}`}</p>
${breaches.length === 0 ? html`<p class="dim">None.</p>` : breachTable(visit, breaches, { label: 'told last first', hasOrders: breaches.some((one) => one.reference !== null) })}
${next === null ? null : html`<p class="more">${reference === null ? html`<span>Newest first</span>` : null}${link(withQuery(here, { ...kept, cursor: next }), reference === null ? 'Older' : 'Next page')}</p>`}
${tried.found === null ? tryForm(visit, tried) : null}`
  return renderPage(visit, 'parcels', 'Watchdogs', main)
}

function leadOf({ rules, waiting, heldSinceMs }: WatchdogsView): Part {
  const open = rules.reduce((sum, rule) => sum + rule.open, 0)
  const wait = waiting === 0 ? '' : ` ${counted(waiting, 'parcel waits', 'parcels wait')} for an answer of the carrier.`
  const held = heldSinceMs === null ? null : html` <span class="warn-text">Nothing is told: neither pushes nor polls tell anything.</span>`
  return html`${open === 0 ? 'No parcel is stalled.' : `${counted(open, 'parcel is', 'parcels are')} stalled.`}${wait}${held}`
}

function tryForm(visit: Visit, { rules, since, found }: Tried): Markup {
  const nextPart =
    found === null || found.next === null
      ? null
      : html` <button class="btn" type="submit" name="after" value="${found.next}">Try on the next parcels</button>`
  return html`<h2 id="try">Try rules</h2>
<details class="plain"${found === null ? null : markup(' open')}><summary>What would rules have said?</summary>
${found === null ? null : foundOf(visit, found, since)}
<form class="form" method="post" action="${visit.to`/watchdogs/try`.path}">
<div class="field"><label for="rules">Rules</label><textarea class="code" id="rules" name="rules" rows="6" spellcheck="false" aria-describedby="rules-hint">
${rules}</textarea><small id="rules-hint">As under <code>watchdogs</code> in the config: ${link(visit.to`/docs/insight`, 'how')}. Nothing is stored or told.</small></div>
<div class="field"><label for="since">Since</label><input id="since" name="since" value="${since}" autocomplete="off" spellcheck="false" aria-describedby="since-hint"><small id="since-hint">Only what was stalled at most this long ago, such as <code>30d</code>.</small></div>
<p><button class="btn" type="submit">Try on the stored histories</button>${nextPart}</p>
</form></details>`
}

function foundOf({ to, nowMs }: Visit, { breaches, parcels, next, counts }: Found, since: string): Markup {
  const looked = `${counted(parcels, 'parcel was', 'parcels were')} looked at${next === null ? '' : ', and there are more'}.`
  if (breaches.length === 0)
    return html`<div class="note" role="status"><strong>No parcel would have been found stalled.</strong> ${looked}</div>`
  const left = breaches.length - LIST_MAX
  return html`<div class="note" role="status"><strong>In ${since}, ${counts.join(', ')}.</strong> ${looked}${left > 0 ? ` The first ${LIST_MAX} are shown.` : null}</div>
${table({
  label: 'What the rules would have said',
  columns: ['Parcel', 'Rule', { time: 'Stalled since' }, { time: 'Over' }],
  rows: breaches
    .slice(0, LIST_MAX)
    .map(({ identifiers: [first = ''], rule, sinceMs, endedAtMs }) => [
      first === '' ? '' : link(to`/parcels/${first}`, first),
      rule,
      timeInTable(sinceMs, nowMs),
      endedAtMs === null ? 'would last' : timeInTable(endedAtMs, nowMs),
    ]),
})}`
}

function rulesTable({ to, nowMs }: Visit, rules: readonly ShownRule[]): Markup {
  return table({
    label: 'Rules',
    columns: ['Rule', 'Stalled is a parcel with', { time: 'In effect since' }, { number: 'Stalled' }],
    rows: rules.map(({ rule, loadedAtMs, open }) => [
      link(withQuery(to`/watchdogs`, { rule: rule.name }), rule.name),
      describeRule(rule),
      loadedAtMs === null ? 'not yet' : timeInTable(loadedAtMs, nowMs),
      countText(open),
    ]),
  })
}

interface Shown {
  readonly label: string
  /** Whether there is a column with the order of each parcel. */
  readonly hasOrders: boolean
}

function breachTable({ to, nowMs }: Visit, breaches: readonly ExplainedBreach[], { label, hasOrders }: Shown): Markup {
  const orderOf = (reference: string | null) => (reference === null ? '' : link(withQuery(to`/watchdogs`, { reference }), reference))
  return table({
    label: `Breaches, ${label}`,
    columns: [
      'Parcel',
      ...(hasOrders ? ['Order'] : []),
      'Rule',
      { time: 'Stalled since' },
      { time: 'Told' },
      'Carrier asked first',
      { time: 'Over' },
    ],
    rows: breaches.map(({ identifiers: [first = ''], reference, rule, why, sinceMs, toldAtMs, checked, endedAtMs }) => [
      first === '' ? '' : link(to`/parcels/${first}`, first),
      ...(hasOrders ? [orderOf(reference)] : []),
      html`${rule}<small>${why ?? 'the rule is gone or has changed'}</small>`,
      timeInTable(sinceMs, nowMs),
      timeInTable(toldAtMs, nowMs),
      checked ? 'yes' : 'could not be',
      endedAtMs === null ? 'lasts' : timeInTable(endedAtMs, nowMs),
    ]),
  })
}
