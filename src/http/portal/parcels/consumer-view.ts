import type { Entry } from '../../../domain/history/history.ts'
import { pickText } from '../../../domain/history/pull-response.ts'
import { compareBytes } from '../../../domain/text.ts'
import { html, type Markup } from '../html.ts'
import { table } from '../parts.ts'
import { timeInLine } from '../times.ts'
import { textIn, whatHappened } from './timeline.ts'

/** The carrier may use any language. More tabs than these would hide the history. */
const VIEWS_MAX = 8
const NAMES = new Intl.DisplayNames('en', { type: 'language' })

/** The languages that have a text for consumers. */
export function consumerViews(entries: readonly Entry[]): readonly string[] {
  const languages = entries.filter(({ displayToConsumer }) => displayToConsumer).flatMap(({ texts }) => Object.keys(texts))
  return [...new Set(languages)].toSorted(compareBytes).slice(0, VIEWS_MAX)
}

/** The English name of a language, or its tag if there is no name. */
export function languageName(tag: string): string {
  try {
    return NAMES.of(tag) ?? tag
  } catch {
    return tag
  }
}

/**
 * The entries as an app shows them to a consumer who reads `language`. If an entry has no text in it, a text in another language is shown.
 */
export function consumerTable(entries: readonly Entry[], language: string, nowMs: number): Markup {
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
