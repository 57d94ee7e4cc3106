import type { ToldEvent } from '../../domain/delivery/operator-event.ts'
import { type Word, wordOperatorEvent } from '../../domain/delivery/operator-words.ts'
import { failureText } from '../../domain/polling/carrier-failure-words.ts'
import { html, type Markup, type Part } from './html.ts'
import { stateMark, table } from './parts.ts'
import { timeInSentence, timeInTable } from './times.ts'

/** The events, the newest first. */
export function eventTable(events: readonly ToldEvent[], nowMs: number): Markup {
  if (events.length === 0) return html`<p class="dim">Nothing has happened that changed a state.</p>`
  return table({
    label: 'What happened',
    columns: [{ title: 'When', isTime: true }, { title: 'What' }, { title: 'State' }],
    rows: events.map(({ atMs, event, detail }) => {
      const { kind, state, sentence } = wordOperatorEvent(event, detail)
      return [timeInTable(atMs, nowMs), html`${sentence.map((word) => partOf(word, nowMs))}`, stateMark(kind, state)]
    }),
  })
}

function partOf(word: Word, nowMs: number): Part {
  if (typeof word === 'string') return word
  if (word.kind === 'name') return html`<strong>${word.text}</strong>`
  if (word.kind === 'carrier') return failureText(word.text)
  const atMs = Date.parse(word.text)
  return Number.isNaN(atMs) ? word.text : timeInSentence(atMs, nowMs)
}
