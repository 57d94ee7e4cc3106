import type { AttemptResult } from '../../../domain/delivery/delivery.ts'
import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import { digest } from '../../../domain/digest.ts'
import { buttonLink, link, withQuery } from '../addresses.ts'
import { html, type Markup, type Part } from '../html.ts'
import { renderPage } from '../layout.ts'
import type { Visit } from '../page-route.ts'
import { actionButton, asOfLine, copyable, crumbs, facts, headline, icon, settingsList } from '../parts.ts'
import { receivedText } from '../received-text.ts'
import { fullTime, relativeTime, settingText, spanText, timeInSentence } from '../times.ts'
import { disabledBecause, webhookMark, webhookStateOf } from './webhook-list.page.ts'

/** What the page says of what was just done; null: nothing was. */
export type WebhookSaid = { readonly kind: 'tested'; readonly result: AttemptResult } | { readonly kind: 'unconfirmed' } | null

/** One webhook: how it does, what it is set to, and what can be done with it. */
export function webhookPage(visit: Visit, state: EndpointState, said: WebhookSaid): string {
  const { to, nowMs, person } = visit
  const { endpoint } = state
  const { id, name } = endpoint
  const word = webhookStateOf(state)
  const isManaged = state.origin === 'managed'
  const main = html`${crumbs([to`/webhooks`, 'Webhooks'])}
${headline({
  title: name,
  state: webhookMark(state, markExtra(state, nowMs)),
  lead: leadOf(state),
  actions: html`${word === 'failing' ? actionButton(to`/webhooks/${id}/retry`, 'Retry now', 'main') : null}${word === 'disabled' && isManaged ? actionButton(to`/webhooks/${id}/enable`, 'Enable', 'main') : null}${actionButton(to`/webhooks/${id}/test`, 'Send test')}${isManaged ? buttonLink(to`/webhooks/${id}/edit`, 'Edit') : null}`,
  asOf: asOfLine(nowMs, to`/webhooks/${id}`),
})}
${noteOf(said, name)}
${facts(factsOf(state, nowMs))}
<p>${link(withQuery(to`/deliveries`, { endpoint: id }), 'All deliveries')}</p>
<div class="cols"><section aria-labelledby="set"><h2 id="set">Settings</h2>
${settingsList(settingsOf(state))}
${isManaged ? html`<p>${buttonLink(to`/webhooks/${id}/edit`, 'Edit settings')}</p>` : html`<p class="dim">It is defined in the config file. Change it there, then reload.</p>`}</section>
${isManaged ? keySection(visit, state) : null}
</div>
${isManaged ? stopSection(visit, state) : null}`
  const title = word === 'delivering' ? `${name} · Webhooks` : `${name}, ${word} · Webhooks`
  return renderPage(visit, { title, section: 'webhooks', person, main })
}

function markExtra(state: EndpointState, nowMs: number): Markup | string | null {
  const { failingSinceMs } = state.health
  if (state.disabled !== null) return disabledBecause(state)
  if (state.health.probing === null || failingSinceMs === null) return null
  return html`since ${timeInSentence(failingSinceMs, nowMs)}, ${spanText(nowMs - failingSinceMs)}`
}

function leadOf(state: EndpointState): string {
  const word = webhookStateOf(state)
  if (word === 'disabled') return 'Nothing is sent. Its events wait, and are sent in order when it is enabled.'
  if (word === 'failing') return 'Its events wait. None is lost: they are sent in order once it answers with 2xx.'
  return 'It is sent each new event.'
}

function factsOf(state: EndpointState, nowMs: number): readonly (readonly [string, Part])[] {
  const { lastSuccessAtMs, probing } = state.health
  return [
    ['Last success', lastSuccessAtMs === null ? 'none yet' : relativeTime(lastSuccessAtMs, nowMs)],
    ...(state.disabled === null && probing !== null ? [['Next probe', relativeTime(probing.atMs, nowMs)] as const] : []),
    ...(state.queuedTo === null ? [] : [['Catching up', html`queued to sequence ${state.queuedTo}`] as const]),
    ['URL', html`<span class="id">${copyable('u', state.endpoint.url, 'the URL')}</span>`],
  ]
}

function settingsOf({ endpoint }: EndpointState): readonly (readonly [string, Part])[] {
  const { filters, ratePerSecond, concurrency, scheduleMs } = endpoint
  const list = (values: readonly string[] | null) => (values === null ? 'all' : values.length === 0 ? 'none' : values.join(', '))
  const byDefault = html` <small>default</small>`
  return [
    ['Status', list(filters.status)],
    ['Detailed status', list(filters.detailedStatus)],
    ['Kind of delivery', list(filters.distributionType)],
    [
      'For consumers',
      filters.displayToConsumer === null ? 'all events' : `only those a consumer may ${filters.displayToConsumer ? '' : 'not '}see`,
    ],
    ['Entries from before', endpoint.backfill ? 'yes' : 'no'],
    ['Rate', ratePerSecond === null ? html`no limit${byDefault}` : `${ratePerSecond} a second`],
    ['At the same time', concurrency === null ? html`as delivery.perEndpoint says${byDefault}` : String(concurrency)],
    ['Waits between attempts', scheduleMs === null ? html`as delivery.schedule says${byDefault}` : scheduleMs.map(settingText).join(', ')],
    ['Signature', endpoint.signature === 'carrier' ? 'as the carrier signs' : 'also as Standard Webhooks'],
    ['An event that it refuses', endpoint.refusals === 'wait' ? 'waits and is tried again' : 'is given up, and the next is sent'],
  ]
}

/** Stands for the keys that a webhook has now: it is another one as soon as they change. Says nothing about them. */
export function stampOfKeys({ keys }: EndpointState): string {
  return keys === null ? '' : digest(`${keys.current} ${keys.next?.sealed ?? ''}`)
}

function keySection({ to, nowMs }: Visit, state: EndpointState): Markup {
  const { id } = state.endpoint
  const next = state.keys?.next ?? null
  const keys = stampOfKeys(state)
  return html`<section aria-labelledby="key"><h2 id="key">Shared key</h2>
${
  next === null
    ? html`<p>It cannot be shown.</p>`
    : html`<div class="note"><strong>Being replaced.</strong> Both keys sign until ${fullTime(next.fromMs, nowMs)}, ${relativeTime(next.fromMs, nowMs)}. Then the new one takes over. Put it into the receiver before.
<div class="acts">${actionButton(to`/webhooks/${id}/new-key-now`, 'Use only the new key, now', '', { keys })}</div></div>`
}
<details class="plain"><summary>Replace the key</summary><form class="form" method="post" action="${to`/webhooks/${id}/key`.path}"><input type="hidden" name="keys" value="${keys}">
<p>For 24 h both keys sign: the old one the usual header, the new one <code>x-service-hmac-sha256-next</code>. Put the new key into the receiver within that time.</p>
<div class="field"><label for="nk">New shared key</label><input id="nk" name="sharedKey" type="password" autocomplete="new-password" aria-describedby="nk-hint"><small id="nk-hint">Empty: the relay makes one and shows it once.</small></div>
<div class="pick"><input type="checkbox" id="leak" name="at" value="now"><label for="leak">The old key has leaked: use only the new one, from now on <small>The receiver refuses events until it has the new key. They wait.</small></label></div>
<p><button class="btn" type="submit">Replace the key</button></p></form></details>
</section>`
}

function stopSection({ to }: Visit, state: EndpointState): Markup {
  const { id, name } = state.endpoint
  return html`<section class="danger-zone" aria-labelledby="dz"><h2 id="dz">Stop</h2>
${state.disabled === null ? html`<details><summary>Disable</summary><p>Nothing more is sent. Events go on to wait for it, and are sent when you enable it again.</p>${actionButton(to`/webhooks/${id}/disable`, `Disable ${name}`, 'danger')}</details>` : null}
<details><summary>Remove</summary><form class="form" method="post" action="${to`/webhooks/${id}/remove`.path}"><p>The events that wait are cancelled. They stay listed, and can be replayed to another webhook. Its key is destroyed.</p>
<div class="field"><label for="sure">Type ${name} to confirm</label><input id="sure" name="confirm" autocomplete="off" spellcheck="false"></div><p><button class="btn danger sure" type="submit">Remove ${name}</button></p></form></details></section>`
}

function noteOf(said: WebhookSaid, name: string): Markup | null {
  if (said === null) return null
  if (said.kind === 'unconfirmed')
    return html`<div class="note bad" role="alert"><strong>Nothing was removed.</strong> Type the name ${name} to confirm.</div>`
  const { result } = said
  const answer = receivedText(result.answerStart)
  const text = answer === '' ? html`no body` : html`<span class="answer">${answer}</span>`
  const took = `${Math.round(result.durationMs)} ms`
  if (result.kind === 'accepted')
    return html`<div class="note ok" role="status">${icon('ok', 'ok')} <strong>The test was accepted:</strong> ${result.status} after ${took}, ${text}.</div>`
  if (result.kind === 'failed')
    return html`<div class="note bad" role="alert">${icon('bad', 'bad')} <strong>The test got no answer:</strong> ${result.reason.replaceAll('_', ' ')} after ${took}.</div>`
  return html`<div class="note bad" role="alert">${icon('bad', 'bad')} <strong>The test was refused:</strong> ${result.status} after ${took}, ${text}.</div>`
}
