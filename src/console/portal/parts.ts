import type { ToldEvent } from '../../core/domain/delivery/operator-event.ts'
import { failureText } from '../../core/domain/polling/carrier-answer.ts'
import type { OperatorEventTable } from '../events/operator-events.ts'
import type { Sentence, Word } from '../problems/words.ts'
import { type Address, html, link, type Markup, markup, type Part, withQuery } from './html.ts'
import { minuteOf, relativeTime, timeInSentence, timeInTable, zone } from './times.ts'

// The building blocks of pages: icons, marks, headlines, tables and buttons.

/** The kinds of state, from good to bad. Each has its own shape and colour. */
export type StateKind = 'ok' | 'warn' | 'bad' | 'off' | 'wait' | 'none'

type IconName = StateKind | 'push' | 'poll' | 'find' | 'menu' | 'box'

/** Draws an icon from the sprite below. Screen readers skip it, so put a word with its meaning beside it. */
export function icon(name: IconName, kind: 'ok' | 'warn' | 'bad' | '' = ''): Markup {
  return html`<svg class="i ${kind}" aria-hidden="true"><use href="#i-${name}"/></svg>`
}

/** Shows a state as icon, colour and word, with `extra` in small type after the word. */
export function stateMark(kind: StateKind, word: string, extra: Part = null): Markup {
  return html`<span class="st ${kind}">${icon(kind)}${word}${extra === null ? null : html` <small>${extra}</small>`}</span>`
}

/** Lets a long address or name break into lines after characters such as `/` and `.`, and before a capital letter. */
export function breakable(text: string): Markup {
  const pieces = text.split(/(?<=[/.?_=&-])(?=[^/])|(?<=[a-z])(?=[A-Z])/)
  return html`${pieces.map((piece, at) => (at === 0 ? html`${piece}` : html`<wbr>${piece}`))}`
}

/** Shows a value that one click selects. The button that copies it is hidden until script runs. */
export function copyable(id: string, text: string, label: string): Markup {
  return html`<span class="copy"><code id="${id}">${breakable(text)}</code><button class="btn small" type="button" data-copy="${id}" aria-label="Copy ${label}" hidden>Copy</button></span>`
}

/** Makes the attributes of an element that script replaces when it has changed. Use each id once on a page. */
export function liveAs(id: 'name' | 'lead' | 'acts' | 'asof' | 'side-links'): Markup {
  return markup(` id="${id}" data-live`)
}

/** Wraps a part of a page that script replaces when it has changed. */
export function island(id: string, part: Part): Markup {
  return html`<div id="${id}" data-live>${part}</div>`
}

/** A form was sent again, and what it orders was done when it was sent first. */
export interface SentAgain {
  readonly kind: 'again'
  readonly atMs: number
}

export function sentAgainNote({ atMs }: SentAgain, nowMs: number): Markup {
  return html`<div class="note ok" role="status">${icon('ok', 'ok')} <strong>This was done at ${timeInSentence(atMs, nowMs)}.</strong> The form was sent again, and nothing was done twice.</div>`
}

export interface Headline {
  readonly title: Part
  readonly state?: Part
  /** One or two sentences with the most important facts of the page. */
  readonly lead?: Part
  readonly actions?: Part
  /** From `asOfLine`. */
  readonly asOf?: Part
  readonly isIdentifier?: boolean
  /** Whether script keeps the headline up to date. */
  readonly isLive?: boolean
}

export function headline({ title, state, lead, actions, asOf, isIdentifier = false, isLive = false }: Headline): Markup {
  const live = (id: 'name' | 'lead' | 'acts') => (isLive ? liveAs(id) : null)
  return html`<div class="head"><div class="name"${live('name')}><h1${isIdentifier ? markup(' class="id"') : null}>${title}</h1>${state}</div>
${isFilled(lead) ? html`<p class="lead"${live('lead')}${isLive ? POLITE : null}>${lead}</p>` : null}${
  isFilled(actions)
    ? html`
<div class="acts"${live('acts')}>${actions}</div>`
    : null
}</div>
${asOf}`
}

/** When the element changes, a screen reader finishes its sentence and then reads the new text. */
const POLITE = markup(' aria-live="polite"')

function isFilled(part: Part): boolean {
  return part !== undefined && part !== null && part !== false && part !== ''
}

export function crumbs(...links: readonly (readonly [to: Address, name: string])[]): Markup {
  return html`<nav class="crumbs" aria-label="Where you are">${links.map(([to, name]) => html`${link(to, name)} <span aria-hidden="true">/</span> `)}</nav>`
}

/** Shows the time of a page's data, with a link that loads the page again. `isLive`: script keeps the page up to date, and says so here. */
export function asOfLine(nowMs: number, here: Address, isLive = false): Markup {
  return html`<p class="asof"${isLive ? liveAs('asof') : null}>As of ${timeInTable(nowMs, nowMs)} ${zone}. ${link(here, 'Load again')}${
    isLive ? html`<span data-streaming hidden>Changes show by themselves.</span>` : null
  }</p>`
}

/** Leads to the next page of a list. `next`: its cursor; null: there is none. */
export function olderLink(here: Address, next: string | null, filters: Parameters<typeof withQuery>[1] = {}): Part {
  return next && html`<p class="more"><span>Newest first</span>${link(withQuery(here, { ...filters, cursor: next }), 'Older')}</p>`
}

/**
 * The title of a column, below the word for what is special about it: it shows numbers, or times, and then its title names their zone, or only screen
 * readers get its title.
 */
export type Column = string | Partial<Record<'number' | 'time' | 'hidden', string>>

export interface Table {
  /** Says what the rows are, for people who cannot see them. */
  readonly label: string
  readonly columns: readonly Column[]
  /** Each row has as many parts as there are columns. The first one names the row. */
  readonly rows: readonly (readonly Part[])[]
  /** `cards`: on narrow screens each row becomes a card. `slim`: on wide screens numbers stay near their names. `lines`: there, a row is one line. */
  readonly kind?: 'cards' | 'cards tight lines' | 'cards tight' | 'cards tight slim' | 'cards tl' | 'traffic cards'
}

/** The ARIA roles keep it a table for screen readers even where its rows become cards. */
export function table({ label, columns, rows, kind = 'cards' }: Table): Markup {
  const titled = columns.map((column) =>
    typeof column === 'string' ? { plain: column } : { plain: column.number ?? column.time, ...column },
  )
  const head = titled.map(
    ({ plain, number, time, hidden }) =>
      html`<th scope="col" role="columnheader"${number && NUMBER}>${
        hidden ? html`<span class="hide">${hidden}</span>` : time ? html`${time} (${zone})` : plain
      }</th>`,
  )
  const row = (cells: readonly Part[]) =>
    html`<tr role="row">${cells.map((cell, at) => {
      if (at === 0) return html`<th scope="row" role="rowheader">${cell}</th>`
      return html`<td role="cell" data-l="${titled[at]?.plain}"${titled[at]?.number && NUMBER}>${cell}</td>`
    })}</tr>
`
  return html`<table class="${kind}" role="table" aria-label="${label}">
<thead role="rowgroup"><tr role="row">${head}</tr></thead>
<tbody role="rowgroup">
${rows.map(row)}</tbody></table>`
}

const NUMBER = markup(' class="n"')

export function facts(rows: readonly (readonly [name: string, value: Part])[]): Markup {
  return html`<dl class="facts">
${rows.map(
  ([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>
`,
)}</dl>`
}

export function settingsList(rows: readonly (readonly [name: string, value: Part])[]): Markup {
  return html`<dl class="set">${rows.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`
}

/** `label`: tells apart several buttons of the same name. */
export function actionButton(
  to: Address,
  name: string,
  kind: 'main' | 'danger' | '' = '',
  fields: Readonly<Record<string, string>> = {},
  label = name,
): Markup {
  return html`<form method="post" action="${to.path}">${Object.entries(fields).map(
    ([field, value]) => html`<input type="hidden" name="${field}" value="${value}">`,
  )}<button class="btn ${kind}" type="submit"${label === name ? null : html` aria-label="${label}"`}>${name}</button></form>`
}

/** The icons, to put once on each page. Each state has its own outline, so that people who do not see colours can tell states apart. */
export const sprite = markup(`<svg class="sprite" aria-hidden="true" focusable="false"><defs>
<symbol id="i-ok" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7"/><path class="k" d="M4.9 8.3 7.1 10.5 11.2 5.8"/></symbol>
<symbol id="i-warn" viewBox="0 0 16 16"><path d="M8 1 15.5 14.5H.5z"/><path class="k" d="M8 6v4M8 11.8v.9"/></symbol>
<symbol id="i-bad" viewBox="0 0 16 16"><path d="M8 .2 15.8 8 8 15.8.2 8z"/><path class="k" d="M5.8 5.8l4.4 4.4M10.2 5.8 5.8 10.2"/></symbol>
<symbol id="i-off" viewBox="0 0 16 16"><circle class="o" cx="8" cy="8" r="6.2"/><path class="o" d="M6.4 5.7v4.6M9.6 5.7v4.6"/></symbol>
<symbol id="i-wait" viewBox="0 0 16 16"><circle class="o" cx="8" cy="8" r="6.2"/><path class="o" d="M8 4.4V8l2.5 1.7"/></symbol>
<symbol id="i-none" viewBox="0 0 16 16"><circle class="o" cx="8" cy="8" r="6.2" stroke-dasharray="2.4 2.5"/></symbol>
<symbol id="i-push" viewBox="0 0 16 16"><path class="o" d="M1.5 8h8.2M6.7 4.8 9.9 8l-3.2 3.2M13.6 2.5v11"/></symbol>
<symbol id="i-poll" viewBox="0 0 16 16"><path class="o" d="M13.4 8A5.4 5.4 0 1 1 11.6 4M13.6 1.6v3h-3"/></symbol>
<symbol id="i-find" viewBox="0 0 16 16"><circle class="o" cx="7" cy="7" r="4.6"/><path class="o" d="M10.4 10.4 14.2 14.2"/></symbol>
<symbol id="i-menu" viewBox="0 0 16 16"><path class="o" d="M2 4h12M2 8h12M2 12h12"/></symbol>
<symbol id="i-box" viewBox="0 0 20 20"><path class="o" d="M2.5 6 10 2l7.5 4v8L10 18l-7.5-4zM2.5 6 10 10l7.5-4M10 10v8"/></symbol>
</defs></svg>`)

/** Shows a sentence that commands print too. On a page, its times can change to the viewer's zone, and its names are bold. */
export function wordsOnPage(words: readonly Word[], nowMs: number): Markup {
  const instants = new Set(words.flatMap((word) => (typeof word !== 'string' && word.kind === 'time' ? Date.parse(word.text) : [])))
  const minutes = Map.groupBy(instants, minuteOf)
  // Two instants of the same minute would read as one: "from 17:16 UTC until 17:16 UTC".
  const isAlike = (atMs: number) => (minutes.get(minuteOf(atMs))?.length ?? 0) > 1
  return html`${words.map((word) => partOf(word, nowMs, isAlike))}`
}

/** Shows a sentence of the relay, with the instants in it as times. */
export function sentenceOnPage(sentence: Sentence, nowMs: number): Markup {
  if (typeof sentence !== 'string') return wordsOnPage(sentence, nowMs)
  const pieces = sentence.split(/(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/)
  return wordsOnPage(
    pieces.map((text, at) => (at % 2 === 0 ? text : { kind: 'time', text })),
    nowMs,
  )
}

function partOf(word: Word, nowMs: number, isAlike: (atMs: number) => boolean): Part {
  if (typeof word === 'string') return word
  if (word.kind === 'name') return html`<strong>${word.text}</strong>`
  if (word.kind === 'said') return html`<q class="said">${word.text}</q>`
  if (word.kind === 'code') return html`<code>${word.text}</code>`
  if (word.kind === 'carrier') return failureText(word.text, word.status)
  const atMs = Date.parse(word.text)
  if (Number.isNaN(atMs)) return word.text
  return word.kind === 'ago' ? relativeTime(atMs, nowMs) : timeInSentence(atMs, nowMs, isAlike(atMs))
}

/** Makes the table of operator events, such as the start and the end of trouble. The newest event is first. */
export function eventTable(events: readonly ToldEvent[], nowMs: number, word: OperatorEventTable['word']): Markup {
  if (events.length === 0) return html`<p class="dim">No state has changed.</p>`
  return table({
    label: 'What happened',
    columns: [{ time: 'When' }, 'What', 'State'],
    rows: events.map(({ atMs, event, detail }) => {
      const { kind, state, sentence } = word(event, detail)
      return [timeInTable(atMs, nowMs), wordsOnPage(sentence, nowMs), stateMark(kind, state)]
    }),
  })
}
