import type { InspectedParcel } from '../../../core/domain/admin/parcel-list.ts'
import { spanText } from '../../../core/domain/amounts.ts'
import { type Entry, type FirstReport, type Learning, learningOf, type Source } from '../../../core/domain/history/history.ts'
import type { Texts } from '../../../core/domain/history/observation.ts'
import { pickText } from '../../../core/domain/history/pull-response.ts'
import { html, type Markup, type Part } from '../html.ts'
import { icon, table } from '../parts.ts'
import { timeInLine } from '../times.ts'

/** Shows the entries as an app shows them to a consumer who reads `language`. If an entry has no text in `language`, shows another language. */
export function consumerTable(entries: readonly Entry[], language: string, nowMs: number): Markup {
  const visible = entries.filter(({ displayToConsumer }) => displayToConsumer)
  return table({
    label: `What a consumer sees, newest first`,
    columns: [{ time: 'Happened' }, 'Status', 'Text'],
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
const AT_ONCE_MS = 1000
/** Below this a lag is shown to a tenth of a second, because `poll.missedPushGrace` may be a few seconds. */
const TENTHS_MS = 10_000

/**
 * Shows the entries of a parcel, newest first: their texts for consumers, and when and how the relay learnt of each entry. `markOf`: what to mark of an
 * entry; null: nothing.
 */
export function timeline({ entries, state }: InspectedParcel, nowMs: number, markOf: (entry: Entry) => string | null = () => null): Markup {
  if (entries.length === 0) return html`<p>The carrier has told nothing about it yet.</p>`
  const learnings = entries.map(learningOf)
  // When the relay first knew the parcel. A missing push is a fault only if the event happened after this time.
  const knownSinceMs = Math.min(...[state.watchedAtMs, ...learnings.map(({ first }) => first.atMs)].filter((atMs) => atMs !== null))
  return table({
    label: 'History, newest first',
    kind: 'cards tl',
    columns: [{ time: 'Happened' }, 'Status', 'The carrier says', 'A consumer sees', 'We learnt of it', 'By'],
    rows: entries.map((entry, at) => {
      const { first, confirmed } = learnings[at] ?? learningOf(entry)
      return [
        timeInLine(entry.atMs, entries[at - 1]?.atMs ?? null, nowMs),
        html`${whatHappened(entry)}${markOf(entry) === null ? null : html`<small><mark>${markOf(entry)}</mark></small>`}`,
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
  if (lagMs < 0) return html`at once<small>the carrier’s clock is ahead</small>`
  const lag = lagMs < TENTHS_MS ? `${(lagMs / 1000).toFixed(1)} s` : spanText(lagMs)
  return html`${lagMs < AT_ONCE_MS ? 'at once' : timeInLine(atMs, happenedAtMs, nowMs)}<small>${lag} later</small>`
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
