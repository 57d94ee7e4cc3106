import type { AttemptResult } from '../../../core/domain/delivery/delivery.ts'
import { receivedText } from '../../../core/domain/text.ts'
import { html, type Markup } from '../html.ts'
import type { Visit } from '../page-route.ts'
import { icon } from '../parts.ts'
import { type FailedWebhook, failureNote } from './failure-words.ts'

/** Shows the result of sending a test to `url`. If it was not accepted, says what it means and what to do. */
export function testNote(visit: Visit, result: AttemptResult, url: string, webhook: FailedWebhook): Markup {
  const answer = receivedText(result.answerStart)
  const text = answer === '' ? html`no body` : html`<span class="answer">${answer}</span>`
  const took = `${Math.round(result.durationMs)} ms`
  if (result.kind === 'accepted')
    return html`<div class="note ok" role="status">${icon('ok', 'ok')} <strong>The test was accepted:</strong> ${result.status} after ${took}, ${text}.</div>`
  const isRefused = result.kind === 'rejected'
  // The answer stands above, so the explanation does not quote it again.
  const failure = { status: isRefused ? result.status : null, reason: isRefused ? null : result.reason, answerStart: new Uint8Array() }
  const what = isRefused
    ? html`<strong>The test was refused:</strong> ${result.status} after ${took}, ${text}.`
    : html`<strong>The test got no answer:</strong> ${result.reason.replaceAll('_', ' ')} after ${took}.`
  return html`<div class="note bad" role="alert">${icon('bad', 'bad')} ${what} ${failureNote(visit, [failure, url, 'all'], webhook)}</div>`
}
