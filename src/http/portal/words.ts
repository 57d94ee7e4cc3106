import { failureText } from '../../domain/polling/carrier-failure-words.ts'
import type { Word } from '../../domain/words.ts'
import { html, type Markup, type Part } from './html.ts'
import { relativeTime, timeInSentence } from './times.ts'

/** Shows a sentence that commands print too. On a page, its times can change to the viewer's zone, and its names are bold. */
export function wordsOnPage(words: readonly Word[], nowMs: number): Markup {
  return html`${words.map((word) => partOf(word, nowMs))}`
}

function partOf(word: Word, nowMs: number): Part {
  if (typeof word === 'string') return word
  if (word.kind === 'name') return html`<strong>${word.text}</strong>`
  if (word.kind === 'carrier') return failureText(word.text)
  const atMs = Date.parse(word.text)
  if (Number.isNaN(atMs)) return word.text
  return word.kind === 'ago' ? relativeTime(atMs, nowMs) : timeInSentence(atMs, nowMs)
}
