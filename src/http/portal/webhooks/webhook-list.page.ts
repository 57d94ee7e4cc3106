import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import { buttonLink, link, withQuery } from '../addresses.ts'
import { html, type Markup } from '../html.ts'
import { renderPage } from '../layout.ts'
import type { Visit } from '../page-route.ts'
import { asOfLine, breakable, countText, headline, type StateKind, stateMark, table } from '../parts.ts'
import { relativeTime, spanText } from '../times.ts'

/** How a webhook is doing, in one word. */
export type WebhookState = 'delivering' | 'failing' | 'disabled'

export function webhookStateOf({ disabled, health }: EndpointState): WebhookState {
  if (disabled !== null) return 'disabled'
  return health.probing === null ? 'delivering' : 'failing'
}

const KINDS: Readonly<Record<WebhookState, StateKind>> = { delivering: 'ok', failing: 'bad', disabled: 'off' }

/** The state with its mark. `extra` stands small beside it. */
export function webhookMark(state: EndpointState, extra: Markup | string | null = null): Markup {
  const word = webhookStateOf(state)
  return stateMark(KINDS[word], word, extra)
}

const DISABLED_BECAUSE: Readonly<Record<NonNullable<EndpointState['disabled']>, string>> = {
  operator: 'by an operator',
  gone: 'by its answer 410 Gone',
  failing: 'after 120 h of failures',
  unnamed: 'no config names it any more',
}

/** Why a webhook is disabled, in words that follow "disabled". */
export function disabledBecause({ disabled }: EndpointState): string {
  return disabled === null ? '' : DISABLED_BECAUSE[disabled]
}

interface Listed {
  readonly endpoints: readonly EndpointState[]
  readonly next: string | null
}

/** All webhooks, those in trouble first. */
export function webhookListPage(visit: Visit, { endpoints, next }: Listed): string {
  const { to, nowMs, person } = visit
  const add = buttonLink(to`/webhooks/new`, 'Add webhook', 'main')
  if (endpoints.length === 0) {
    const main = html`${headline({ title: 'Webhooks', lead: 'None yet.' })}
<div class="empty"><h2>Send every event to your own address</h2><p>The relay posts each new event there, signed and in order per parcel, in the carrier’s own form. It tries again until your side accepts.</p><p>${add}</p></div>`
    return renderPage(visit, { title: 'Webhooks', section: 'webhooks', person, main })
  }
  const order: readonly WebhookState[] = ['failing', 'disabled', 'delivering']
  const sorted = endpoints.toSorted((a, b) => order.indexOf(webhookStateOf(a)) - order.indexOf(webhookStateOf(b)))
  const count = (state: WebhookState) => endpoints.filter((one) => webhookStateOf(one) === state).length
  const failing = count('failing')
  const main = html`${headline({
    title: 'Webhooks',
    actions: add,
    lead: html`${countText(count('delivering'))} deliver, ${failing === 0 ? 'none is failing' : html`<span class="bad-text">${failing === 1 ? '1 is' : `${countText(failing)} are`} failing</span>`}, ${countText(count('disabled'))} disabled.`,
    asOf: asOfLine(nowMs, to`/webhooks`),
  })}
${table({
  label: 'Webhooks',
  columns: [{ title: 'Webhook' }, { title: 'State' }, { title: 'Last success' }],
  rows: sorted.map((state) => [
    html`${link(to`/webhooks/${state.endpoint.id}`, html`<strong>${state.endpoint.name}</strong>`)}<small>${breakable(state.endpoint.url)}${state.origin === 'config' ? ' · from the config file' : null}</small>`,
    html`${webhookMark(state)}${sinceOf(state, nowMs)}`,
    state.health.lastSuccessAtMs === null ? 'none yet' : relativeTime(state.health.lastSuccessAtMs, nowMs),
  ]),
})}
${next === null ? null : html`<p class="more">${link(withQuery(to`/webhooks`, { cursor: next }), 'Next page')}</p>`}`
  const title = failing === 0 ? 'Webhooks' : `${failing} failing · Webhooks`
  return renderPage(visit, { title, section: 'webhooks', person, main })
}

function sinceOf(state: EndpointState, nowMs: number): Markup | null {
  const { failingSinceMs } = state.health
  if (state.disabled !== null) return html`<small>${disabledBecause(state)}</small>`
  return failingSinceMs === null || state.health.probing === null ? null : html`<small>for ${spanText(nowMs - failingSinceMs)}</small>`
}
