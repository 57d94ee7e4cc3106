import type { Entry } from '../../../domain/history/history.ts'
import { pickText } from '../../../domain/history/pull-response.ts'
import { compareBytes } from '../../../domain/text.ts'
import { html, type Markup } from '../html.ts'
import { table } from '../parts.ts'
import { timeInLine } from '../times.ts'
import { textIn, whatHappened } from './timeline.ts'

/** The most tabs for languages. The carrier may use many languages, and more tabs would push the history out of sight. */
const VIEWS_MAX = 8
const NAMES = new Intl.DisplayNames('en', { type: 'language' })

/** Returns the languages, as tags, in which entries have texts for consumers. */
export function consumerViews(entries: readonly Entry[]): readonly string[] {
  const languages = entries.filter(({ displayToConsumer }) => displayToConsumer).flatMap(({ texts }) => Object.keys(texts))
  return [...new Set(languages)].toSorted(compareBytes).slice(0, VIEWS_MAX)
}

/** Returns the English name of a language, or its tag if the language has no name. */
export function languageName(tag: string): string {
  try {
    return NAMES.of(tag) ?? tag
  } catch {
    return tag
  }
}

/** Shows the entries as an app shows them to a consumer who reads `language`. If an entry has no text in `language`, shows another language. */
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
