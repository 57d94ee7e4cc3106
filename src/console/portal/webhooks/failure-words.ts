import type { EndpointState } from '../../../core/domain/delivery/endpoint-state.ts'
import { type FailureWords, failureSentence, wordFailure } from '../../problems/failure-words.ts'
import { link } from '../addresses.ts'
import { html, type Markup, type Part } from '../html.ts'
import type { Visit } from '../page-route.ts'
import { wordsOnPage } from '../words.ts'

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
