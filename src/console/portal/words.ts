import { failureText } from '../../core/domain/polling/carrier-failure-words.ts'
import type { Sentence, Word } from '../../core/domain/words.ts'
import { html, type Markup, type Part } from './html.ts'
import { relativeTime, timeInSentence } from './times.ts'

/** Shows a sentence that commands print too. On a page, its times can change to the viewer's zone, and its names are bold. */
export function wordsOnPage(words: readonly Word[], nowMs: number): Markup {
  return html`${words.map((word) => partOf(word, nowMs))}`
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

function partOf(word: Word, nowMs: number): Part {
  if (typeof word === 'string') return word
  if (word.kind === 'name') return html`<strong>${word.text}</strong>`
  if (word.kind === 'said') return html`<q class="said">${word.text}</q>`
  if (word.kind === 'code') return html`<code>${word.text}</code>`
  if (word.kind === 'carrier') return failureText(word.text, word.status)
  const atMs = Date.parse(word.text)
  if (Number.isNaN(atMs)) return word.text
  return word.kind === 'ago' ? relativeTime(atMs, nowMs) : timeInSentence(atMs, nowMs)
}
