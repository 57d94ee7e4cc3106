import type { AttemptResult } from '../../../core/domain/delivery/delivery.ts'
import type { EndpointState } from '../../../core/domain/delivery/endpoint-state.ts'
import { receivedText } from '../../../core/domain/text.ts'
import { type FailureWords, failureSentence, wordFailure } from '../../problems/words.ts'
import { html, link, type Markup, type Part } from '../html.ts'
import type { Visit } from '../layout.ts'
import { icon, wordsOnPage } from '../parts.ts'

/** The webhook of a failed attempt. Null: it was removed. */
export type FailedWebhook = { readonly id: string; readonly origin: EndpointState['origin'] } | null

/** Says what to do about a failed attempt, and leads to where it is done. */
export function remedyOf({ to, person }: Visit, { remedy, change }: FailureWords, webhook: FailedWebhook): Markup {
  if (change === null || webhook === null || person.scope !== 'admin') return html`${remedy}`
  const { id, origin } = webhook
  const reload = html`then reload: ${link(to`/reload`, 'Reload the config')}`
  const how: Part =
    origin === 'operator'
      ? html`It is set by <code>${change === 'url' ? 'operator.url' : 'operator.sharedKey'}</code>: change it in the config file, ${reload}.`
      : change === 'key'
        ? html`${link(to`/webhooks/${id}#key`, 'Compare its key')}.`
        : origin === 'managed'
          ? html`${link(to`/webhooks/${id}/edit#url`, 'Edit the URL')}.`
          : html`Its URL is in the config file: change it there, ${reload}.`
  return html`${remedy} ${how}`
}

/** Explains a failed attempt, and says what to do about it. */
export function failureNote(visit: Visit, failure: Parameters<typeof wordFailure>, webhook: FailedWebhook): Markup {
  const words = wordFailure(...failure)
  return html`${wordsOnPage(failureSentence(words), visit.nowMs)} ${remedyOf(visit, words, webhook)}`
}

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
