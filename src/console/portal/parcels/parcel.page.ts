import type { InspectedParcel } from '../../../core/domain/admin/parcel-list.ts'
import { spanText } from '../../../core/domain/amounts.ts'
import { type Entry, type FirstReport, type Learning, learningOf, type Source } from '../../../core/domain/history/history.ts'
import type { Texts } from '../../../core/domain/history/observation.ts'
import { pickText } from '../../../core/domain/history/pull-response.ts'
import { compareBytes, receivedText } from '../../../core/domain/text.ts'
import type { ExplainedParcel } from '../../../core/flow/admin/parcels/parcel-queries.ts'
import { html, link, type Markup, markup, type Part, withQuery } from '../html.ts'
import { renderPage, type Visit } from '../layout.ts'
import { actionButton, asOfLine, copyable, crumbs, facts, headline, icon, island, stateMark, table } from '../parts.ts'
import { relativeTime, timeInLine, timeInSentence } from '../times.ts'
import { dueText, mainIdentifier, STOPPED_BECAUSE } from './parcel-list.page.ts'

/** The message on the page: why asking the carrier brought no news. Null: no message. */
export type ParcelSaid = 'unknown' | 'unavailable' | null

const SAID: Readonly<Record<NonNullable<ParcelSaid>, readonly [what: string, then: string]>> = {
  unknown: ['The carrier does not know it', ', or its answer could not be used. It is asked again at the next check.'],
  unavailable: ['The carrier cannot be asked now.', ' The next check asks it again.'],
}

/** Makes the page of one parcel. It shows the history, the newest entry first, or what a consumer sees in `language`. */
export function parcelPage(
  visit: Visit,
  parcel: ExplainedParcel,
  shown: { readonly language: string | null; readonly said: ParcelSaid; readonly watchedBy: string | null },
): string {
  const { to, nowMs, person } = visit
  const { state, identifiers, entries } = parcel
  const name = mainIdentifier(identifiers)
  const isAdmin = person.scope === 'admin'
  const watching =
    state.nextPollAtMs === null
      ? actionButton(to`/parcels/${name}/watch`, 'Watch')
      : actionButton(to`/parcels/${name}/unwatch`, 'Stop watching')
  const [latest] = entries
  const languages = consumerViews(entries)
  const language = languages.find((one) => one === shown.language) ?? null
  const main = html`${crumbs([to`/parcels`, 'Parcels'])}
${headline({
  title: name,
  isIdentifier: true,
  state:
    latest === undefined ? stateMark('none', 'nothing known') : stateMark(state.stopped === 'delivered' ? 'ok' : 'wait', latest.status),
  lead: leadOf(latest, state, nowMs),
  actions: html`${isAdmin ? html`${actionButton(to`/parcels/${name}/refresh`, 'Refresh now')}${watching}` : null}<a class="btn" href="#share">Share</a>`,
  asOf: asOfLine(nowMs, to`/parcels/${name}`, true),
  isLive: true,
})}
${noteOf(shown.said)}
${island('facts', facts(factsOf(parcel, shown.watchedBy, nowMs)))}
${isAdmin ? html`<p>${link(withQuery(to`/deliveries`, { parcel: name }), 'Its deliveries to webhooks')}, ${link(withQuery(to`/audit`, { about: 'parcel', id: name }), 'who ordered what about it')}</p>` : null}
${island(
  'history',
  html`${tabsOf(visit, name, languages, language)}
${language === null ? timeline(parcel, nowMs) : consumerTable(entries, language, nowMs)}`,
)}
${shareSection(visit, name)}
${isAdmin ? eraseSection(visit, name) : null}`
  return renderPage(visit, { title: `${name} · Parcels`, section: 'parcels', person, main })
}

function noteOf(said: ParcelSaid): Markup | null {
  if (said === null) return null
  const [what, then] = SAID[said]
  return html`<div class="note warn" role="alert"><strong>${what}</strong>${then}</div>`
}

function leadOf(latest: Entry | undefined, { checkedAtMs, failures }: ExplainedParcel['state'], nowMs: number): Part {
  if (latest === undefined) {
    if (checkedAtMs === null || failures > 0) return 'Nothing is known of it yet.'
    return html`The carrier was asked ${relativeTime(Math.min(checkedAtMs, nowMs), nowMs)} and knows nothing of it. Is the number right?`
  }
  const place = latest.location === '' ? '' : `, ${latest.location}`
  // The words of the carrier come first. The page is in English, so English ones are shown if there are any.
  const said = pickText(latest, 'detailed', ['en'])
  const words = said === null || said.text === null || said.text === '' ? null : html`<span lang="${said.language}">${said.text}</span>`
  return html`${words ?? (latest.detailedStatus === '' ? latest.status : latest.detailedStatus)}${place}, ${relativeTime(latest.atMs, nowMs)}.`
}

function factsOf(
  { state, identifiers, distributionType, nextPollBecause, waitsForCarrier }: ExplainedParcel,
  watchedBy: string | null,
  nowMs: number,
): readonly (readonly [string, Part])[] {
  const idsOf = (isTrackingId: boolean) =>
    identifiers.filter((one) => one.isTrackingId === isTrackingId).map(({ value }) => html`<span class="id">${value}</span> `)
  const [numbers, trackingIds] = [idsOf(false), idsOf(true)]
  const ended = state.stopped === null ? 'none' : `ended: ${STOPPED_BECAUSE[state.stopped]}`
  return [
    ['The carrier last told us', state.lastSeenAtMs === null ? 'never' : relativeTime(state.lastSeenAtMs, nowMs)],
    [
      'Next check',
      state.nextPollAtMs === null
        ? ended
        : html`${dueText(state.nextPollAtMs, nowMs, { waitsForCarrier })}${nextPollBecause === null ? null : html` <small>${receivedText(nextPollBecause)}</small>`}`,
    ],
    ['Last check', state.checkedAtMs === null ? 'none yet' : relativeTime(state.checkedAtMs, nowMs)],
    ['Tracking number', numbers.length === 0 ? 'not known yet' : numbers],
    ...(trackingIds.length === 0 ? [] : [['Tracking ids', trackingIds] as const]),
    ['Kind of delivery', distributionType === '' ? 'not known yet' : distributionType],
    ...(state.watchedAtMs === null
      ? []
      : [
          [
            'Watched',
            html`${watchedBy === null ? null : html`by ${receivedText(watchedBy)} `}since ${timeInSentence(state.watchedAtMs, nowMs)}`,
          ] as const,
        ]),
  ]
}

function tabsOf({ to }: Visit, name: string, languages: readonly string[], shown: string | null): Markup {
  const current = (isCurrent: boolean) => (isCurrent ? markup(' aria-current="page"') : null)
  return html`<ul class="tabs" aria-label="Views of this parcel"><li>${link(to`/parcels/${name}`, 'History', current(shown === null))}</li>${languages.map(
    (language) =>
      html`<li>${link(
        withQuery(to`/parcels/${name}`, { view: 'consumer', language }),
        `Consumer: ${languageName(language)}`,
        current(language === shown),
      )}</li>`,
  )}</ul>`
}

/** Shows the address to share. Without `portal.publicUrl` the relay does not know its host, so script adds the origin from the browser. */
function shareSection({ to, publicOrigin }: Visit, name: string): Markup {
  const { path } = to`/parcels/${name}`
  return html`<section aria-labelledby="share"><h2 id="share">Share</h2>
<p>${copyable('share-url', `${publicOrigin ?? ''}${path}`, 'the address of this page')}</p>
<p class="dim">Whoever opens it logs in first; a colleague with the scope <code>status</code> sees this page without its buttons.</p>
<p>Apps read this parcel with <code>GET /v1/status/${name}/all?language=en</code></p></section>`
}

function eraseSection({ to }: Visit, name: string): Markup {
  return html`<section class="danger-zone" aria-labelledby="dz"><h2 id="dz">Erase</h2>
<details><summary>Erase this parcel and everything about it</summary><form class="form" method="post" action="${to`/parcels/${name}/erase`.path}"><p>This removes its pushes, its history, its deliveries, and what other records say about it. Later pushes about it are not kept. This cannot be undone.</p>
<div class="field"><label for="sure">Type ${name} to confirm</label><input id="sure" name="confirm" autocomplete="off" spellcheck="false"></div><p><button class="btn danger sure" type="submit">Erase ${name} for good</button></p></form></details></section>`
}

/** The most tabs for languages. The carrier may use many languages, and more tabs would push the history out of sight. */
const VIEWS_MAX = 8
const NAMES = new Intl.DisplayNames('en', { type: 'language' })

/** Returns the languages, as tags, in which entries have texts for consumers. */
function consumerViews(entries: readonly Entry[]): readonly string[] {
  const languages = entries.filter(({ displayToConsumer }) => displayToConsumer).flatMap(({ texts }) => Object.keys(texts))
  return [...new Set(languages)].toSorted(compareBytes).slice(0, VIEWS_MAX)
}

/** Returns the English name of a language, or its tag if the language has no name. */
function languageName(tag: string): string {
  try {
    return NAMES.of(tag) ?? tag
  } catch {
    return tag
  }
}

/** Shows the entries as an app shows them to a consumer who reads `language`. If an entry has no text in `language`, shows another language. */
function consumerTable(entries: readonly Entry[], language: string, nowMs: number): Markup {
  const visible = entries.filter(({ displayToConsumer }) => displayToConsumer)
  return table({
    label: `What a consumer sees, newest first`,
    columns: [{ title: 'Happened', isTime: true }, { title: 'Status' }, { title: 'Text' }],
    rows: visible.map((entry, at) => {
      const picked = pickText(entry, 'consumer', [language])
      return [
        timeInLine(entry.atMs, visible[at - 1]?.atMs ?? null, nowMs),
        whatHappened(entry),
        picked === null || picked.text === null ? html`<span class="dim">no text</span>` : textIn(picked.language, picked.text),
      ]
    }),
  })
}

/** If the relay learns of an entry within this time after the event, the page says "at once". */
const AT_ONCE_MS = 5000

/** Shows the entries of a parcel, newest first: their texts for consumers, and when and how the relay learnt of each entry. */
function timeline({ entries, state }: InspectedParcel, nowMs: number): Markup {
  if (entries.length === 0) return html`<p>The carrier has told nothing about it yet.</p>`
  const learnings = entries.map(learningOf)
  // When the relay first knew the parcel. A missing push is a fault only if the event happened after this time.
  const knownSinceMs = Math.min(...[state.watchedAtMs, ...learnings.map(({ first }) => first.atMs)].filter((atMs) => atMs !== null))
  return table({
    label: 'History, newest first',
    kind: 'cards tl',
    columns: [
      { title: 'Happened', isTime: true },
      { title: 'Status' },
      { title: 'The carrier says' },
      { title: 'A consumer sees' },
      { title: 'We learnt of it' },
      { title: 'By' },
    ],
    rows: entries.map((entry, at) => {
      const { first, confirmed } = learnings[at] ?? learningOf(entry)
      return [
        timeInLine(entry.atMs, entries[at - 1]?.atMs ?? null, nowMs),
        whatHappened(entry),
        textsOf(entry, ({ detailed }) => detailed),
        entry.displayToConsumer
          ? textsOf(entry, ({ consumer }) => consumer)
          : html`<span class="dim">nothing</span><small>not for consumers</small>`,
        learntWhen(first, entry.atMs, nowMs),
        sourcesOf({ first, confirmed }, { happenedAtMs: entry.atMs, knownSinceMs, nowMs }),
      ]
    }),
  })
}

/** Shows the status of an entry with its detail and its location. */
function whatHappened({ status, detailedStatus, location }: Entry): Markup {
  const detail = detailedStatus === status ? null : html`<small>${detailedStatus}</small>`
  return html`<strong>${status}</strong>${detail}<small>${location === '' ? 'no place' : location}</small>`
}

/** Shows one text of an entry, which `of` picks, in each language. */
function textsOf({ texts }: Entry, of: (texts: Texts) => string | null | undefined): Part {
  const given = Object.entries(texts).flatMap(([language, ofLanguage]) => {
    const text = of(ofLanguage)
    return text === null || text === undefined ? [] : [{ language, text }]
  })
  if (given.length === 0) return html`<span class="dim">nothing</span>`
  const sorted = given.toSorted((a, b) => (a.language < b.language ? -1 : 1))
  return html`<div>${sorted.map(({ language, text }) => textIn(language, text))}</div>`
}

function textIn(language: string, text: string): Markup {
  return html`<p lang="${language}"><span class="lang" aria-hidden="true">${language}</span>${text}</p>`
}

function learntWhen({ atMs }: FirstReport, happenedAtMs: number, nowMs: number): Markup {
  if (atMs === null) return html`<span class="dim">not kept</span>`
  const lagMs = atMs - happenedAtMs
  // The carrier’s clock may be ahead of ours.
  if (lagMs < AT_ONCE_MS)
    return html`at once<small>${lagMs < 0 ? 'the carrier’s clock is ahead' : `${(lagMs / 1000).toFixed(1)} s later`}</small>`
  return html`${timeInLine(atMs, happenedAtMs, nowMs)}<small>${spanText(lagMs)} later</small>`
}

const OTHER: Readonly<Record<Source, string>> = { push: 'a poll agreed', poll: 'the push came' }

function sourcesOf(
  { first, confirmed }: Learning,
  { happenedAtMs, knownSinceMs, nowMs }: { readonly happenedAtMs: number; readonly knownSinceMs: number; readonly nowMs: number },
): Markup {
  const { source } = first
  const told = (isLate: boolean, other: Part) =>
    html`<span class="${isLate ? 'late' : ''}">${icon(source)}</span> ${source}<small>${other}</small>`
  if (confirmed !== null) {
    const { atMs } = confirmed
    return told(false, atMs === null ? OTHER[source] : html`${OTHER[source]} at ${timeInLine(atMs, happenedAtMs, nowMs)}`)
  }
  if (source === 'push') return told(false, 'no poll has listed it yet')
  if (happenedAtMs < knownSinceMs) return told(false, 'from before we knew the parcel')
  return told(true, html`<span class="warn-text">no push came</span>`)
}
