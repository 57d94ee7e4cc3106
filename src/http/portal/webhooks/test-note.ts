import type { AttemptResult } from '../../../domain/delivery/delivery.ts'
import { receivedText } from '../../../domain/received-text.ts'
import { html, type Markup, type Part } from '../html.ts'
import { icon } from '../parts.ts'

/** Shows the result of sending a test. `remedy`: what the result means and what to do, if it was not accepted. */
export function testNote(result: AttemptResult, remedy: Part = null): Markup {
  const answer = receivedText(result.answerStart)
  const text = answer === '' ? html`no body` : html`<span class="answer">${answer}</span>`
  const took = `${Math.round(result.durationMs)} ms`
  if (result.kind === 'accepted')
    return html`<div class="note ok" role="status">${icon('ok', 'ok')} <strong>The test was accepted:</strong> ${result.status} after ${took}, ${text}.</div>`
  if (result.kind === 'failed')
    return html`<div class="note bad" role="alert">${icon('bad', 'bad')} <strong>The test got no answer:</strong> ${result.reason.replaceAll('_', ' ')} after ${took}. ${remedy}</div>`
  return html`<div class="note bad" role="alert">${icon('bad', 'bad')} <strong>The test was refused:</strong> ${result.status} after ${took}, ${text}. ${remedy}</div>`
}
