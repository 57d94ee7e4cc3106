import type { InspectedParcel } from '../../../domain/admin/parcel-list.ts'
import type { Entry } from '../../../domain/history/history.ts'
import type { Texts } from '../../../domain/history/status-entry.ts'
import { link, withQuery } from '../addresses.ts'
import { html, type Markup, type Part } from '../html.ts'
import { renderPage } from '../layout.ts'
import type { Visit } from '../page-route.ts'
import { actionButton, asOfLine, crumbs, facts, headline, icon, stateMark, table } from '../parts.ts'
import { relativeTime, timeInLine, timeInSentence } from '../times.ts'
import { mainIdentifier, STOPPED_BECAUSE } from './parcel-list.page.ts'

/** One parcel with its history, newest first. */
export function parcelPage(visit: Visit, parcel: InspectedParcel): string {
  const { to, nowMs, person } = visit
  const { state, identifiers, entries } = parcel
  const name = mainIdentifier(identifiers)
  const watching =
    state.nextPollAtMs === null
      ? actionButton(to`/parcels/${name}/watch`, 'Watch')
      : actionButton(to`/parcels/${name}/unwatch`, 'Stop watching')
  const [latest] = entries
  const main = html`${crumbs([to`/parcels`, 'Parcels'])}
${headline({
  title: name,
  isIdentifier: true,
  state:
    latest === undefined ? stateMark('none', 'nothing known') : stateMark(state.stopped === 'delivered' ? 'ok' : 'wait', latest.status),
  lead: leadOf(latest, nowMs),
  actions: person.scope === 'admin' ? html`${actionButton(to`/parcels/${name}/refresh`, 'Refresh now')}${watching}` : null,
  asOf: asOfLine(nowMs, to`/parcels/${name}`),
})}
${facts(factsOf(parcel, nowMs))}
${person.scope === 'admin' ? html`<p>${link(withQuery(to`/deliveries`, { parcel: name }), 'Its deliveries to webhooks')}</p>` : null}
<h2>History</h2>
${entries.length === 0 ? html`<p>The carrier has told nothing about it yet.</p>` : timeline(visit, entries)}`
  return renderPage(visit, { title: `${name} · Parcels`, section: 'parcels', person, main })
}

function leadOf(latest: Entry | undefined, nowMs: number): Part {
  if (latest === undefined) return 'Nothing is known of it yet.'
  const place = latest.location === '' ? '' : `, ${latest.location}`
  return html`${latest.detailedStatus === '' ? latest.status : latest.detailedStatus}${place}, ${relativeTime(latest.atMs, nowMs)}.`
}

function factsOf({ state, identifiers }: InspectedParcel, nowMs: number): readonly (readonly [string, Part])[] {
  const idsOf = (isTrackingId: boolean) =>
    identifiers.filter((one) => one.isTrackingId === isTrackingId).map(({ value }) => html`<span class="id">${value}</span> `)
  const [numbers, trackingIds] = [idsOf(false), idsOf(true)]
  const ended = state.stopped === null ? 'none' : `ended: ${STOPPED_BECAUSE[state.stopped]}`
  return [
    ['The carrier last told us', state.lastSeenAtMs === null ? 'never' : relativeTime(state.lastSeenAtMs, nowMs)],
    ['Next check', state.nextPollAtMs === null ? ended : relativeTime(state.nextPollAtMs, nowMs)],
    ['Last check', state.checkedAtMs === null ? 'none yet' : relativeTime(state.checkedAtMs, nowMs)],
    ['Tracking number', numbers.length === 0 ? 'not known yet' : numbers],
    ...(trackingIds.length === 0 ? [] : [['Tracking ids', trackingIds] as const]),
    ...(state.watchedAtMs === null ? [] : [['Watched since', timeInSentence(state.watchedAtMs, nowMs)] as const]),
  ]
}

function timeline({ nowMs }: Visit, entries: readonly Entry[]): Markup {
  const columns = [{ title: 'Happened', isTime: true }, { title: 'Status' }, { title: 'The carrier says' }, { title: 'A consumer sees' }]
  return table({
    label: 'History, newest first',
    columns: [...columns, { title: 'By' }],
    rows: entries.map((entry, at) => [
      timeInLine(entry.atMs, entries[at - 1]?.atMs ?? null, nowMs),
      html`<strong>${entry.status}</strong>${entry.detailedStatus === entry.status ? null : html`<small>${entry.detailedStatus}</small>`}<small>${
        entry.location === '' ? 'no place' : entry.location
      }</small>`,
      textsOf(entry, ({ detailed }) => detailed),
      entry.displayToConsumer
        ? textsOf(entry, ({ consumer }) => consumer)
        : html`<span class="dim">nothing</span><small>not for consumers</small>`,
      doorsOf(entry),
    ]),
  })
}

/** The carrier's words, each marked with its language. */
function textsOf({ texts }: Entry, of: (texts: Texts) => string | null | undefined): Part {
  const given = Object.entries(texts).flatMap(([language, ofLanguage]) => {
    const text = of(ofLanguage)
    return text === null || text === undefined ? [] : [{ language, text }]
  })
  if (given.length === 0) return html`<span class="dim">nothing</span>`
  const sorted = given.toSorted((a, b) => (a.language < b.language ? -1 : 1))
  return html`<div>${sorted.map(
    ({ language, text }) => html`<p lang="${language}"><span class="lang" aria-hidden="true">${language}</span>${text}</p>`,
  )}</div>`
}

function doorsOf({ members }: Entry): Markup {
  const [first] = members.toSorted((a, b) => a.sequence - b.sequence)
  const door = first?.sighting.source ?? 'poll'
  const isAgreed = members.some(({ sighting }) => sighting.source !== door)
  const alone = door === 'push' ? 'no poll has listed it yet' : 'no push came'
  return html`${icon(door)} ${door}<small>${isAgreed ? `a ${door === 'push' ? 'poll' : 'push'} agreed` : alone}</small>`
}
