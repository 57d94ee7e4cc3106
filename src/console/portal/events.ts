import type { ToldEvent } from '../../core/domain/delivery/operator-event.ts'
import { wordOperatorEvent } from '../events/operator-words.rules.ts'
import { html, type Markup } from './html.ts'
import { stateMark, table } from './parts.ts'
import { timeInTable } from './times.ts'
import { wordsOnPage } from './words.ts'

/** Makes the table of operator events, such as the start and the end of trouble. The newest event is first. */
export function eventTable(events: readonly ToldEvent[], nowMs: number): Markup {
  if (events.length === 0) return html`<p class="dim">No state has changed.</p>`
  return table({
    label: 'What happened',
    columns: [{ title: 'When', isTime: true }, { title: 'What' }, { title: 'State' }],
    rows: events.map(({ atMs, event, detail }) => {
      const { kind, state, sentence } = wordOperatorEvent(event, detail)
      return [timeInTable(atMs, nowMs), wordsOnPage(sentence, nowMs), stateMark(kind, state)]
    }),
  })
}
